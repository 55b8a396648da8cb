"""A small auth app whose mail is sent by jobs: register, verify, sign in, change the address.

Read it in the order in which a registration travels:

    main.py       puts the app together: settings, database, queue, kinds, pages
    routes/       what a browser may ask for; `registering.py` pushes the verify mail in the request's transaction
    accounts.py   what an account is allowed to become, and `links.py`, the proof that an address is read
    kinds.py      the kinds of job: each makes its mail, link included, at the moment it goes
    mail.py       where mail goes: an SMTP server, or the outbox page
    command.py    `python -m example_app jobs`: what failed, run again or forgotten
"""
