"""The worker's API."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Response
from pydantic import BaseModel

from goldspan.web import models as m
from goldspan.web.dependencies import ContextHere, WorkerHere

# --------------------------------------------------------------------------------------------------
# The JSON API of a worker: the next task, an answer, skip, flag, give back, how far I am.


router = APIRouter(prefix="/api/work", tags=["work"])


@router.post("/next", response_model=m.NextAnswer, responses=m.refusals())
def next_task(worker: WorkerHere, context: ContextHere, _: m.NextBody) -> Response:
    """Return the next task, the same one while it is held; or say why there is none."""
    return _reply(m.NextAnswer, context.service.work.next(worker.person))


@router.post("/answers", response_model=m.AnswerAnswer, responses=m.refusals(409, 410))
def answer(worker: WorkerHere, context: ContextHere, body: m.AnswerBody) -> Response:
    """Take an answer; the same key and body again give the same reply and count once."""
    work = context.service.work
    return _reply(m.AnswerAnswer, work.submit(worker.person, body.task, body.key, body.answer))


@router.post("/given", response_model=m.GivenAnswer, responses=m.refusals())
def given(worker: WorkerHere, context: ContextHere, _: m.NextBody) -> Response:
    """List the answers of this session that count, the last one first."""
    return _reply(m.GivenAnswer, context.service.work.given(worker.person, worker.issued))


@router.post("/recall", response_model=m.RecallAnswer, responses=m.refusals(404))
def recall(worker: WorkerHere, context: ContextHere, body: m.TaskBody) -> Response:
    """Return a task that was answered, with the answer."""
    work = context.service.work
    return _reply(m.RecallAnswer, work.recall(worker.person, body.task, worker.issued))


@router.post("/change", response_model=m.ChangeAnswer, responses=m.refusals(404, 409, 410))
def change(worker: WorkerHere, context: ContextHere, body: m.AnswerBody) -> Response:
    """Change an answer; the same key and body again give the same reply and count once."""
    work = context.service.work
    told = work.change(worker.person, body.task, body.key, body.answer, worker.issued)
    return _reply(m.ChangeAnswer, told)


@router.post("/skip", response_model=m.Done, responses=m.refusals(409, 410))
def skip(worker: WorkerHere, context: ContextHere, body: m.SkipBody) -> Response:
    """Leave a task to others."""
    return _reply(m.Done, context.service.work.skip(worker.person, body.task, body.reason))


@router.post("/flag", response_model=m.Done, responses=m.refusals(409, 410))
def flag(worker: WorkerHere, context: ContextHere, body: m.FlagBody) -> Response:
    """Say that something is wrong with an item, and leave it."""
    work = context.service.work
    said = work.flag(worker.person, body.task, body.key, body.reason, body.note)
    return _reply(m.Done, said)


@router.post("/release", response_model=m.Done, responses=m.refusals(410))
def release(worker: WorkerHere, context: ContextHere, body: m.TaskBody) -> Response:
    """Return a task back; it may come again."""
    return _reply(m.Done, context.service.work.release(worker.person, body.task))


@router.get("/me", response_model=m.Me, responses=m.refusals())
def me(worker: WorkerHere, context: ContextHere) -> Response:
    """Return what the worker has done and earned."""
    return _reply(m.Me, context.service.work.me(worker.person))


def _reply(model: type[BaseModel], body: dict[str, Any]) -> Response:
    """Return a body as its model has it, in the thread of the route: FastAPI takes another one."""
    words = model.model_validate(body).model_dump_json(exclude_unset=True)
    return Response(words, media_type="application/json")
