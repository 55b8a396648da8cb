"""`python -m fastqueue.cli`: the same as `fastqueue`."""

from fastqueue.cli import main

main()
