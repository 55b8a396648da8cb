"""Background jobs for FastAPI and Starlette, kept in the database the app already has."""

__version__ = "0.1.0"
