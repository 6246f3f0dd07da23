"""State and agreement of a judging round."""

from typing import Any
from uuid import UUID

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from apps.api.endpoint import Endpoint
from apps.api.openapi import refusals
from apps.api.resources.judging.rounds import find_round
from apps.api.serializers.judging.state import AgreementFacts, RoundState
from apps.judging.judges import require_lead
from apps.judging.models import Round
from apps.judging.settling.agreeing import agreement_of
from apps.judging.settling.describing import agreement_facts, state_facts
from apps.judging.settling.summing import summary_of


class State(Endpoint):
    model = Round
    acts = {"GET": "view"}

    @extend_schema(operation_id="get_round_state", responses=RoundState)
    def get(self, request: Request, round_id: UUID) -> Response:
        """Show how far a round is, each judge's pace, what is settled and about how many grades more are needed."""
        return Response(RoundState(state_facts(summary_of(find_round(request, round_id)))).data)


class Agreement(Endpoint):
    model = Round
    acts = {"GET": "view"}

    @extend_schema(operation_id="get_agreement", responses={200: AgreementFacts} | refusals(409))
    def get(self, request: Request, round_id: UUID) -> Response:
        """Show how far the judges of a round agree.

        409 where the round is blind and open, and you do not lead it.
        """
        round: Any = find_round(request, round_id)
        if round.blind and round.is_open:
            require_lead(round, request.user)
        return Response(AgreementFacts(agreement_facts(agreement_of(round))).data)
