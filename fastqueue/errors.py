"""Every error fastqueue raises, and what a caller can do about it.

FastQueueError
├── called wrongly: mend the call
│   ├── OptionError           (ValueError)    an option, a name or a setting that cannot be
│   ├── KindError             (TypeError)     a handler whose value cannot be read from its signature
│   ├── RegistrationError     (RuntimeError)  registered twice, too late, or pushed while registering
│   ├── ScheduleError         (ValueError)    a schedule that is none, or never comes round
│   ├── ValueRefused          (ValueError)    a value that would not come back as it went in
│   ├── MailRefused           (ValueError)    a mail that cannot be sent, or is too long for a job
│   ├── CarriedTooLarge       (ValueError)    more carried than a job may keep
│   ├── WrongPlace            (TypeError)     push where nobody can await it, push_sync where it would block
│   ├── InlineDelay           (ValueError)    a delay on a queue that runs each job inside its push
│   ├── TransactionRefused    (ValueError)    a handle that is no open transaction on the queue's database
│   ├── TransactionEnded      (RuntimeError)  a transaction was over before what was to be in it
│   ├── TwoTransactions       (RuntimeError)  two transactions where one is meant
│   └── MoveRefused           (ValueError)    a move of jobs to where they cannot go
├── the store cannot: choose another store, or migrate
│   ├── Unsupported           (TypeError)     an option that the store does not keep
│   ├── SchemaMissing, SchemaTooOld, SchemaTooNew
│   └── MissingDriver         (ImportError)   a package to install
├── the store failed: try again later
│   └── StoreUnavailable
└── how a run ended
    ├── Permanent             raised by a handler: no further attempt
    ├── Mismatch              the stored value no longer fits the handler
    ├── OutOfTime             (TimeoutError)  the run took longer than its timeout
    ├── WorkerLost            the worker died in the job's last attempt
    └── Interrupted           the queue stopped before the run was over
"""

from __future__ import annotations

__all__ = [
    "CarriedTooLarge",
    "FastQueueError",
    "InlineDelay",
    "Interrupted",
    "KindError",
    "MailRefused",
    "Mismatch",
    "MissingDriver",
    "MoveRefused",
    "OptionError",
    "OutOfTime",
    "Permanent",
    "RegistrationError",
    "ScheduleError",
    "SchemaMissing",
    "SchemaTooNew",
    "SchemaTooOld",
    "StoreUnavailable",
    "TransactionEnded",
    "TransactionRefused",
    "TwoTransactions",
    "Unsupported",
    "ValueRefused",
    "WorkerLost",
    "WrongPlace",
]


class FastQueueError(Exception):
    """The root of every error that fastqueue raises."""

    @property
    def help(self) -> str:
        """The place in the documentation that tells why it came and what to do."""
        named = next(each.__name__ for each in type(self).__mro__ if each.__name__ in __all__)
        return f"errors.md#{named.lower()}"


class OptionError(FastQueueError, ValueError):
    """An option, a name or a setting that cannot be: the message names it, its value and the remedy."""


class KindError(FastQueueError, TypeError):
    """A handler whose value type cannot be read: the message names the kind, the parameter and the remedy."""


class RegistrationError(FastQueueError, RuntimeError):
    """A kind or schedule registered twice or too late, or a job pushed while kinds are being registered."""


class ScheduleError(FastQueueError, ValueError):
    """A schedule that is none: a malformed expression, an unknown zone, a time that never comes round."""


class ValueRefused(FastQueueError, ValueError):
    """A value that would not come back as it went in; refused at the push, before any SQL."""


class MailRefused(FastQueueError, ValueError):
    """A mail that cannot be sent: a line break in a header, an address that is none, too long to be kept in a job."""


class CarriedTooLarge(FastQueueError, ValueError):
    """What the push would carry is more than a job may keep (4096 bytes of JSON); nothing was pushed."""


class WrongPlace(FastQueueError, TypeError):
    """`push` where nobody can await it, or `push_sync` where it would block the event loop."""


class InlineDelay(FastQueueError, ValueError):
    """A push for later on an `inline://` queue, which keeps nothing until then; nothing was run."""


class TransactionRefused(FastQueueError, ValueError):
    """A handle given to `in_` that is not an open transaction on the queue's own database."""


class TransactionEnded(FastQueueError, RuntimeError):
    """A transaction was over too early: jobs were pushed after its end, or the block that was to end it found it so."""


class TwoTransactions(FastQueueError, RuntimeError):
    """Two transactions where one is meant: one session dependency at two scopes in a route, or one begun in another."""


class MoveRefused(FastQueueError, ValueError):
    """Jobs that are to be moved to where they are, or while an earlier move to another store is not over."""


class Unsupported(FastQueueError, TypeError):
    """An option, schedule or transaction that the store does not keep; raised when it is registered."""


class SchemaMissing(FastQueueError):
    """The store's tables are not there; the message holds the command that makes them."""


class SchemaTooOld(FastQueueError):
    """The store's tables are from an older version; the message holds the command that upgrades them."""


class SchemaTooNew(FastQueueError):
    """The store's tables are from a newer version of fastqueue than this one."""


class MissingDriver(FastQueueError, ImportError):
    """A package that the store needs is not installed; the message holds the install line."""


class StoreUnavailable(FastQueueError):
    """The store could not be reached, or failed; the driver's own error is the cause."""


class Permanent(FastQueueError):
    """Raise it in a handler to fail the job at once, without another attempt.

    It is recognised anywhere in the chain of causes. The error kept with the job is what it was given.

    Args:
        error: The error to keep, as an exception or a text.

    Example:
        >>> raise Permanent("no such mailbox")
        Traceback (most recent call last):
        fastqueue.errors.Permanent: no such mailbox
    """

    def __init__(self, error: BaseException | str) -> None:
        super().__init__(error)
        self.error = error
        if isinstance(error, BaseException):
            self.__cause__ = error

    def __str__(self) -> str:
        return str(self.error) or type(self.error).__name__


class Mismatch(FastQueueError):
    """A stored value that no longer fits the handler's type; the job fails at once and keeps its value."""


class OutOfTime(FastQueueError, TimeoutError):
    """The run took longer than its timeout; an ordinary failed attempt."""


class WorkerLost(FastQueueError):
    """The worker that ran the job's last attempt never told how it ended, so the job failed for good."""


class Interrupted(FastQueueError):
    """The queue stopped while the job ran; it was put back to run again from the start."""
