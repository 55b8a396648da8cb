"""All groups of clauses as one."""

from __future__ import annotations

from fastqueue.testing.conformance.at_once import AtOnceClauses
from fastqueue.testing.conformance.carry import CarryClauses
from fastqueue.testing.conformance.claims import ClaimClauses
from fastqueue.testing.conformance.faculties import FacultyClauses
from fastqueue.testing.conformance.failed import FailedClauses
from fastqueue.testing.conformance.holds import HoldClauses
from fastqueue.testing.conformance.joins import JoinClauses
from fastqueue.testing.conformance.latest import LatestClauses
from fastqueue.testing.conformance.looking import LookingClauses
from fastqueue.testing.conformance.model import ModelClauses
from fastqueue.testing.conformance.moves import MoveClauses
from fastqueue.testing.conformance.one_at_a_time import OneAtATimeClauses
from fastqueue.testing.conformance.races import RaceClauses
from fastqueue.testing.conformance.schedules import ScheduleClauses
from fastqueue.testing.conformance.stress import StressClauses
from fastqueue.testing.conformance.throttles import ThrottleClauses
from fastqueue.testing.conformance.tokens import TokenClauses
from fastqueue.testing.conformance.unique import UniqueClauses

__all__ = ["AllClauses"]


class AllClauses(
    ClaimClauses,
    TokenClauses,
    ScheduleClauses,
    UniqueClauses,
    LatestClauses,
    OneAtATimeClauses,
    AtOnceClauses,
    HoldClauses,
    FailedClauses,
    CarryClauses,
    ThrottleClauses,
    MoveClauses,
    LookingClauses,
    FacultyClauses,
    JoinClauses,
    RaceClauses,
    StressClauses,
    ModelClauses,
):
    """Every clause of the store contract."""
