"""What the environment may say, and what is refused before anything starts."""

from __future__ import annotations

import pytest

from example_app.settings import Settings, SettingsError


def test_nothing_set_is_a_developer_s_instance() -> None:
    settings = Settings.from_environ({})
    assert settings == Settings()
    assert settings.in_serve


def test_an_empty_variable_counts_as_not_set() -> None:
    assert Settings.from_environ({"QUEUE_WORKERS": " ", "SMTP_URL": ""}) == Settings()


def test_everything_can_be_set() -> None:
    settings = Settings.from_environ(
        {
            "DATABASE_URL": "postgresql://u:p@db/app",
            "APP_URL": "https://app.example.com/",
            "SECRET_KEY": "k" * 32,
            "SMTP_URL": "smtps://u:p@mail.example.com:465",
            "MAIL_FROM": "App <app@example.com>",
            "QUEUE_CONCURRENCY": "8",
            "QUEUE_IN_SERVE": "false",
            "QUEUE_NAMES": "high, default",
            "SHUTDOWN_TIMEOUT": "2.5",
            "HOST": "0.0.0.0",
            "PORT": "9000",
        }
    )
    assert settings == Settings(
        database_url="postgresql://u:p@db/app",
        app_url="https://app.example.com",
        secret_key="k" * 32,
        smtp_url="smtps://u:p@mail.example.com:465",
        mail_from="App <app@example.com>",
        workers=8,
        in_serve=False,
        queues=("high", "default"),
        shutdown_timeout=2.5,
        host="0.0.0.0",
        port=9000,
    )
    assert settings.secure
    assert not settings.in_serve


def test_no_workers_make_an_instance_that_only_pushes() -> None:
    assert not Settings.from_environ({"QUEUE_WORKERS": "0"}).in_serve


def test_links_follow_the_port() -> None:
    assert Settings.from_environ({"PORT": "9000"}).app_url == "http://127.0.0.1:9000"


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("QUEUE_WORKERS", "many", "QUEUE_WORKERS cannot be 'many': give a whole number, 0 or more"),
        ("QUEUE_WORKERS", "-1", "QUEUE_WORKERS cannot be '-1': give a whole number, 0 or more"),
        ("QUEUE_CONCURRENCY", "1.5", "QUEUE_CONCURRENCY cannot be '1.5': give a whole number"),
        ("QUEUE_IN_SERVE", "maybe", "QUEUE_IN_SERVE cannot be 'maybe': give true or false"),
        ("QUEUE_NAMES", "high,,low", "QUEUE_NAMES cannot be 'high,,low': give names of queues"),
        ("QUEUE_NAMES", "a,a", "QUEUE_NAMES cannot be 'a,a': give names of queues"),
        ("SHUTDOWN_TIMEOUT", "soon", "SHUTDOWN_TIMEOUT cannot be 'soon': give seconds"),
        ("SHUTDOWN_TIMEOUT", "nan", "SHUTDOWN_TIMEOUT cannot be 'nan': give seconds"),
        ("PORT", "0", "PORT cannot be '0': give a port from 1 to 65535"),
        ("APP_URL", "app.example.com", "APP_URL cannot be 'app.example.com': give where browsers reach the app"),
        ("MAIL_FROM", "a\nBcc: b", r"MAIL_FROM cannot be 'a\nBcc: b': give one line"),
        ("SECRET_KEY", "hunter2", "SECRET_KEY cannot be its value: give at least 32 characters"),
        ("SMTP_URL", "mail.example.com", "SMTP_URL cannot be its value: give smtp://"),
        ("SMTP_URL", "smtp://host:port", "SMTP_URL cannot be its value: "),
        ("DATABASE_URL", "redis://localhost", "DATABASE_URL cannot be its value: give sqlite:///file.db"),
        ("DATABASE_URL", "sqlite://", "DATABASE_URL cannot be its value: it names no database that outlives"),
        ("DATABASE_URL", "nonsense", "DATABASE_URL cannot be its value: give sqlite:///file.db"),
    ],
)
def test_a_value_that_cannot_be_is_refused_with_the_remedy(name: str, value: str, says: str) -> None:
    with pytest.raises(SettingsError) as refused:
        Settings.from_environ({name: value})
    assert str(refused.value).startswith(says)


@pytest.mark.parametrize("name", ["DATABASE_URL", "SECRET_KEY", "SMTP_URL"])
def test_a_refused_secret_is_not_repeated(name: str) -> None:
    with pytest.raises(SettingsError) as refused:
        Settings.from_environ({name: "hunter2"})
    assert "hunter2" not in str(refused.value)


def test_two_names_of_one_setting_have_to_agree() -> None:
    assert Settings.from_environ({"QUEUE_WORKERS": "3", "QUEUE_CONCURRENCY": "3"}).workers == 3
    with pytest.raises(SettingsError, match="QUEUE_WORKERS is 2 and QUEUE_CONCURRENCY is 3"):
        Settings.from_environ({"QUEUE_WORKERS": "2", "QUEUE_CONCURRENCY": "3"})


def test_secrets_are_not_shown_with_the_settings() -> None:
    shown = repr(Settings(secret_key="the key", smtp_url="smtp://u:word@host", database_url="mysql://u:word@host/x"))
    assert "the key" not in shown
    assert "word" not in shown
