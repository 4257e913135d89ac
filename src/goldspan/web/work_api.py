"""The worker's API."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Response
from pydantic import BaseModel

from goldspan.web.dependencies import ContextHere, WorkerHere
from goldspan.web.models import (
    AnswerAnswer,
    AnswerBody,
    ChangeAnswer,
    Done,
    FlagBody,
    GivenAnswer,
    GivenBody,
    Me,
    NextAnswer,
    NextBody,
    RecallAnswer,
    RecallBody,
    ReleaseBody,
    SkipBody,
    refusals,
)

# --------------------------------------------------------------------------------------------------
# The JSON API of a worker: the next task, an answer, skip, flag, give back, how far I am.


router = APIRouter(prefix="/api/work", tags=["work"])


@router.post("/next", response_model=NextAnswer, responses=refusals())
def next_task(worker: WorkerHere, context: ContextHere, _: NextBody) -> Response:
    """Return the next task, the same one while it is held; or say why there is none."""
    return _reply(NextAnswer, context.service.work.next(worker.person))


@router.post("/answers", response_model=AnswerAnswer, responses=refusals(409, 410))
def answer(worker: WorkerHere, context: ContextHere, body: AnswerBody) -> Response:
    """Take an answer; the same key and body again give the same reply and count once."""
    return _reply(
        AnswerAnswer, context.service.work.submit(worker.person, body.task, body.key, body.answer)
    )


@router.post("/given", response_model=GivenAnswer, responses=refusals())
def given(worker: WorkerHere, context: ContextHere, _: GivenBody) -> Response:
    """List the answers of this session that count, the last one first."""
    return _reply(GivenAnswer, context.service.work.given(worker.person, worker.issued))


@router.post("/recall", response_model=RecallAnswer, responses=refusals(404))
def recall(worker: WorkerHere, context: ContextHere, body: RecallBody) -> Response:
    """Return a task that was answered, with the answer."""
    work = context.service.work
    return _reply(RecallAnswer, work.recall(worker.person, body.task, worker.issued))


@router.post("/change", response_model=ChangeAnswer, responses=refusals(404, 409, 410))
def change(worker: WorkerHere, context: ContextHere, body: AnswerBody) -> Response:
    """Change an answer; the same key and body again give the same reply and count once."""
    work = context.service.work
    told = work.change(worker.person, body.task, body.key, body.answer, worker.issued)
    return _reply(ChangeAnswer, told)


@router.post("/skip", response_model=Done, responses=refusals(409, 410))
def skip(worker: WorkerHere, context: ContextHere, body: SkipBody) -> Response:
    """Leave a task to others."""
    return _reply(Done, context.service.work.skip(worker.person, body.task, body.key, body.reason))


@router.post("/flag", response_model=Done, responses=refusals(409, 410))
def flag(worker: WorkerHere, context: ContextHere, body: FlagBody) -> Response:
    """Say that something is wrong with an item, and leave it."""
    return _reply(
        Done, context.service.work.flag(worker.person, body.task, body.key, body.reason, body.note)
    )


@router.post("/release", response_model=Done, responses=refusals(410))
def release(worker: WorkerHere, context: ContextHere, body: ReleaseBody) -> Response:
    """Return a task back; it may come again."""
    return _reply(Done, context.service.work.release(worker.person, body.task))


@router.get("/me", response_model=Me, responses=refusals())
def me(worker: WorkerHere, context: ContextHere) -> Response:
    """Return what the worker has done and earned."""
    return _reply(Me, context.service.work.me(worker.person))


def _reply(model: type[BaseModel], body: dict[str, Any]) -> Response:
    """Return a body as its model has it, and nothing else of it.

    Here, in the thread of the route: FastAPI would take another one for it.
    """
    words = model.model_validate(body).model_dump_json(exclude_unset=True)
    return Response(words, media_type="application/json")
