"""Mail by SMTP: sent now, or from a job that is tried again until the server has taken it. Needs `fastqueue[mail]`.

A mail that is sent later is rendered when it is asked for and kept encrypted, so that neither its text nor whom it is
for can be read in the database, and it has one Message-ID however often it is tried.

Example:
    ```python
    mailer = Mailer("smtp://localhost", sender="Shop <shop@example.com>", keys=[key])
    queue.include(mailer.kinds)

    await mailer.in_(session).send_later(Mail(to="ann@example.org", subject="Shipped", text="It is on its way."))
    ```
"""

from fastqueue.errors import MissingDriver

try:
    from fastqueue.mail._mailer import Later, Mailer
except ModuleNotFoundError as error:
    if error.name not in ("aiosmtplib", "cryptography"):
        raise
    raise MissingDriver(f"mail needs {error.name}: pip install 'fastqueue[mail]'", name=error.name) from error
from fastqueue.mail._render import Attachment, Mail

__all__ = ["Attachment", "Later", "Mail", "Mailer"]
