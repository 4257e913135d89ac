"""A language model as an annotator: any endpoint of the OpenAI protocol, with what it costs."""

from __future__ import annotations

import json
import re
from collections import Counter, deque
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from statistics import fmean
from threading import Event
from typing import TYPE_CHECKING, Annotated, Any

from goldspan._arrays import hash64
from goldspan.annotators.base import (
    AnnotationTask,
    Annotator,
    Estimate,
    ItemAnswer,
    Known,
    SoftSpan,
    Usage,
    WorkerEntry,
    priced,
    written,
)
from goldspan.annotators.endpoint import (
    DONE,
    LOST,
    SENT,
    Call,
    Endpoint,
    MaybePaidError,
    NotServedError,
    NotTakenError,
    Replies,
    StoppedError,
    check_address,
    is_local,
)
from goldspan.annotators.prompt import (
    FORM,
    Completion,
    InvalidReplyError,
    Prompt,
    Reading,
    content_hash,
    hash_of,
)
from goldspan.crowd.questions import Questions, units
from goldspan.errors import InputError
from goldspan.params import IsA, Number, OneOf, Whole
from goldspan.plugins import secret_of
from goldspan.protocols import PoolItem

if TYPE_CHECKING:
    import httpx2

# --------------------------------------------------------------------------------------------------
# What the kind "llm" takes.


_OURS = frozenset(
    {
        "model", "messages", "prompt", "tools", "tool_choice", "functions", "function_call",
        "stream", "n", "response_format", "max_tokens", "max_completion_tokens", "logprobs",
        "top_logprobs", "seed",
    }
)  # fmt: skip
"""Keys of a call that `extra` cannot set."""


def _check_extra(extra: Any) -> None:
    if not isinstance(extra, Mapping):
        raise InputError(f"extra must be a table of keys and values, not {extra!r}")
    ours = sorted(_OURS & {*extra})
    if ours:
        raise InputError(f"extra cannot set {', '.join(ours)}: they are set by goldspan")


@dataclass(frozen=True)
class ModelOptions:
    """What the kind "llm" takes."""

    # Address of the endpoint, such as "http://localhost:11434/v1"
    base_url: Annotated[str, IsA((str,)), check_address]
    model: str  # Name of the model there
    # Environment variable that holds the key (or, with _FILE added, the name of a file with it); ""
    # where the endpoint asks for none. The key itself is in no plan.
    key_variable: Annotated[str, _check_variable] = ""
    # For spans: "tokens": the model gives the numbers of tokens and repeats their words; "quotes":
    # it quotes words
    form: Annotated[str, OneOf(("tokens", "quotes"))] = "tokens"
    # "json_schema": the endpoint enforces the schema; "json_object": it writes some JSON; "none":
    # it is only told
    schema: Annotated[str, OneOf(("json_schema", "json_object", "none"))] = "json_schema"
    # "chat": messages; "completion": one text with examples, which models that follow no
    # instructions go on with, without a schema
    style: Annotated[str, OneOf(("chat", "completion"))] = "chat"
    prompt: str = ""  # Words after the instructions, by which several prompts are several workers
    examples: Annotated[int, Whole(0, 1000)] = 0  # How many items with known labels are shown
    examples_seed: Annotated[int, Whole(0)] = 0  # Decides which ones
    # Replies per item, which become one answer with probabilities
    samples: Annotated[int, Whole(1, 100)] = 1
    # By default 0 for one sample, and 0.7 for several
    temperature: Annotated[float, Number(0, 2)] | None = None
    logprobs: bool = False  # Whether to ask for the probabilities of the reply's tokens
    # Of the model's random numbers; sample k is asked with seed + k, and one that is asked for
    # again with a seed of its own
    seed: Annotated[int, Whole(0, 2**31)] = 0
    max_output: Annotated[int, Whole(1)] = 1000  # Most tokens of a reply
    # What the endpoint calls that
    output_key: Annotated[str, OneOf(("max_tokens", "max_completion_tokens"))] = "max_tokens"
    # How often a sample is asked for whose reply is refused, cut or invalid
    attempts: Annotated[int, Whole(1, 10)] = 2
    # How often a call is sent that is not served: 429, 5xx, no connection
    tries: Annotated[int, Whole(1, 20)] = 6
    seconds: Annotated[float, Number(above=0)] = 120.0  # That a reply may take
    concurrency: Annotated[int, Whole(1, 256)] = 4  # Calls at once
    # What else a call holds, such as {top_p = 0.9}; null leaves a key out
    extra: Annotated[Mapping[str, Any], _check_extra] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.samples > 1 and self.temperature == 0:
            raise InputError(f"{self.samples} samples at temperature 0 are {self.samples} copies")
        if self.style == "completion" and (self.logprobs or not self.examples):
            why = "gives no logprobs" if self.logprobs else "needs examples, such as examples = 5"
            raise InputError(f'style = "completion" {why}')


def _check_variable(name: Any) -> None:
    if not isinstance(name, str) or (name and not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name)):
        raise InputError(  # without saying what it is: some put the key itself there
            "key_variable must be the name of an environment variable, such as MY_KEY; the "
            "variable holds the key, which must not be anywhere else"
        )


def draw_examples(
    known: Sequence[tuple[PoolItem, Known]], n: int, seed: int
) -> tuple[tuple[PoolItem, Known], ...]:
    """Draw items with known labels for a prompt: first such that show every label."""
    if n > len(known):
        raise InputError(
            f"{n} examples are wanted, and {len(known)} items with known labels are set aside "
            "(goldspan label takes those of --examples FILE)"
        )
    order = sorted(known, key=lambda one: (hash64(f"{seed}\0{one[0].id}"), one[0].id))
    chosen: list[tuple[PoolItem, Known]] = []
    seen: set[Any] = set()
    while len(chosen) < n:
        rest = [one for one in order if one not in chosen]
        best = max(rest, key=lambda one: len(_shown_by(one[1]) - seen))  # of equals the first
        seen |= _shown_by(best[1])
        chosen.append(best)
    return tuple(chosen)


def _shown_by(known: Known) -> set[Any]:
    """Return the labels that an example shows."""
    if isinstance(known, Mapping):
        return {(unit.layer, unit.what.type) for unit in units(known)}
    return {*known}


# --------------------------------------------------------------------------------------------------
# The annotator.


CIRCUIT = 8
"""Items in a row that were not served, or not taken, after which no more are asked about."""
IN_VAIN = 25
"""Items in a row whose replies were lost, refused or invalid, after which no more are paid for."""
_PATHS = {"chat": "/chat/completions", "completion": "/completions"}
_MESSAGE, _BASE = 16, 64
"""Tokens that an endpoint may add to every message and to every call."""


@dataclass(frozen=True)
class _Asked:
    """What became of an item: its answer, and whether it could be asked about at all."""

    answer: ItemAnswer
    is_served: bool | None = None  # Whether the endpoint served it; None where nothing was sent


@dataclass(frozen=True)
class _Heard:
    """What came of a sample: its calls, what the first valid reply says, else what is wrong."""

    calls: Sequence[Call]
    reading: Reading | None
    wrong: InvalidReplyError  # What is with the last reply that is none
    is_over: bool = True  # Whether it is not asked for again


class LanguageModel(Annotator):
    """A language model behind an endpoint of the OpenAI protocol.

    Every reply is kept under address, model, prompt and item before anything else is done with it:
    an annotator that is asked again, or after a kill, replies the same and pays nothing twice. A
    call that was cut off by the end of the process may have been paid: it is sent again under the
    same `Idempotency-Key`, and counted in `facts()` as not settled.
    """

    Options = ModelOptions

    def __init__(
        self,
        entry: WorkerEntry,
        task: AnnotationTask,
        client: httpx2.Client | None = None,
        first_wait: float = 1.0,
    ) -> None:
        super().__init__(entry, task)
        own: ModelOptions = self.options
        key = secret_of(own.key_variable) if own.key_variable else None
        if own.key_variable and key is None and task.send_text:
            raise InputError(
                f"worker {entry.id}: the environment variable {own.key_variable} is not set: it "
                "must hold the key of the endpoint"
            )
        examples = draw_examples(task.examples, own.examples, own.examples_seed)
        kind = Completion if own.style == "completion" else Prompt
        self.prompt = kind(task, own.form, examples, own.prompt)
        self._replies = Replies(task.cache)
        self._endpoint = Endpoint(
            own.base_url, key, _PATHS[own.style], seconds=own.seconds, tries=own.tries,
            client=client, first_wait=first_wait,
        )  # fmt: skip
        self._sent: list[bool] = []  # Of every call that was sent, whether one was before it
        self._replies.remember(self.prompt_hash, canonical(self._template))

    @property
    def family(self) -> str:
        """The family of the entry; by default the model: prompts of one model err alike."""
        return self.entry.family or str(self.options.model)

    def close(self) -> None:
        """Close connections and files."""
        self._endpoint.close()
        self._replies.close()

    # What is sent.

    @cached_property
    def prompt_hash(self) -> str:
        """The hash of everything that is sent but the item."""
        return hash_of(self._template)

    @cached_property
    def _template(self) -> dict[str, Any]:
        return {"form": FORM} | self._body(self.prompt.beginning, 0)

    def _body(self, messages: Sequence[Mapping[str, str]], sample: int) -> dict[str, Any]:
        """Return a call."""
        own: ModelOptions = self.options
        usual = 0.0 if own.samples == 1 else 0.7
        is_chat = own.style == "chat"
        text = "".join(one["content"] for one in messages)
        words = {"messages": [*messages]} if is_chat else {"prompt": text, "stop": ["\n"]}
        body: dict[str, Any] = {
            "model": own.model,
            **words,
            "temperature": usual if own.temperature is None else own.temperature,
            "seed": own.seed + sample,
            own.output_key: own.max_output,
        }
        if own.logprobs:
            body |= {"logprobs": True, "top_logprobs": 5}
        if own.schema == "json_schema" and is_chat:
            schema = {"name": "labels", "strict": True, "schema": self.prompt.schema}
            body["response_format"] = {"type": "json_schema", "json_schema": schema}
        elif own.schema == "json_object" and is_chat:
            body["response_format"] = {"type": "json_object"}
        body |= own.extra
        return {key: value for key, value in body.items() if value is not None}

    def key_of(self, item: PoolItem) -> str:
        """Return the key under which the replies about an item are kept."""
        return hash_of([self._address, self.options.model, self.prompt_hash, content_hash(item)])

    @property
    def _address(self) -> str:
        """The address of the endpoint, as the replies know it."""
        return self._where.rstrip("/")

    @cached_property
    def _asked_as(self) -> str:
        """The hash of address and prompt, under which calls are counted."""
        return hash_of([self._address, self.prompt_hash])

    # What it costs.

    def estimate(self, items: Sequence[PoolItem], *, retry_missing: bool = False) -> Estimate:
        """Return what answers will cost; nothing is sent."""
        # Expected are four bytes per token
        own, tariff = self.options, self.entry.tariff
        n_cached = n_same = n_in = n_out = expected = most = 0
        seen: set[str] = set()
        for item in items:
            key = self.key_of(item)
            if self._is_blank(item):
                continue
            if key in seen:  # the model is paid once, and what is paid per answer for each
                n_cached, n_same = n_cached + 1, n_same + 1
                expected += tariff.cost(len(item.tokens))
                most += tariff.cost(len(item.tokens))
                continue
            stored = self._stored(item, key)
            if stored and not (retry_missing and stored.missing):
                n_cached += 1
                continue
            seen.add(key)
            size = self._bytes_before + self._size(self.prompt.messages(item)[-1:])
            sent = own.samples * -(-size // 4)
            came = own.samples * min(own.max_output, 24 + len(item.tokens))
            n_in, n_out = n_in + sent, n_out + came
            expected += tariff.cost(len(item.tokens), Usage(1, sent, came))
            most += self.most(item)
        return Estimate(len(items), n_cached, n_same, n_in, n_out, expected, most)

    def most(self, item: PoolItem) -> int:
        """Return the most that an answer can cost; replies that are stored change nothing."""
        own, bound = self.options, self._bound(item)
        calls = own.samples * own.attempts
        used = Usage(calls, calls * bound.input_tokens, calls * bound.output_tokens)
        return self.entry.tariff.cost(len(item.tokens), used)

    @cached_property
    def _bytes_before(self) -> int:
        """Bytes of all that is sent but the item."""
        own: ModelOptions = self.options
        has_schema = own.schema == "json_schema" and own.style == "chat"
        more: list[Mapping[str, Any]] = [self.prompt.schema] if has_schema else []
        more += [own.extra] if own.extra else []
        size = sum(len(canonical(one).encode("utf-8", "surrogatepass")) for one in more)
        return size + self._size(self.prompt.beginning)

    def _size(self, messages: Sequence[Mapping[str, str]]) -> int:
        return sum(len(one["content"].encode("utf-8", "surrogatepass")) for one in messages)

    def _bound(self, item: PoolItem) -> Usage:
        """Return the most that one call about an item can use."""
        messages = self.prompt.messages(item)
        size = self._bytes_before + self._size(messages[-1:])
        sent = size + _BASE + _MESSAGE * len(messages)
        return Usage(1, sent, self.options.max_output, assumed=1)

    def _is_known(self, item: PoolItem, key: str) -> bool:
        """Whether all samples about an item are there, or will not be asked for again."""
        samples = range(self.options.samples)
        return all(self._heard(item, key, sample).is_over for sample in samples)

    def _is_blank(self, item: PoolItem) -> bool:
        """Whether nothing is known of an item but its id, which is not sent."""
        is_id = item.text is None and not item.attributes and item.tokens == (item.id,)
        return self.task.is_single and is_id

    def _stored(self, item: PoolItem, key: str) -> ItemAnswer | None:
        """Return the answer of the replies that are there, if nothing more will be asked for."""
        return self._answer(item, key, is_new=False) if self._is_known(item, key) else None

    def _heard(self, item: PoolItem, key: str, sample: int) -> _Heard:
        """Read the replies to a sample, up to the first that says something."""
        calls, wrong = self._replies.calls(key, sample), InvalidReplyError("")
        over = [call.reply for call in calls if call.state in {DONE, LOST}]
        for reply in over:
            if reply.get("fault"):
                wrong = InvalidReplyError(str(reply["fault"]))
                continue
            try:
                reading = self.prompt.read(reply["content"], item, reply.get("tokens", ()))
                return _Heard(calls, reading, wrong)
            except InvalidReplyError as error:
                wrong = error
        return _Heard(calls, None, wrong, is_over=len(over) >= self.options.attempts)

    # What it answers.

    def label(self, items: Sequence[PoolItem]) -> Iterator[ItemAnswer]:
        """Yield the answers; calls are made at once, as many as `concurrency` says."""
        # A caller that stops listening ends it: calls that were sent are waited for and kept
        if not self.task.send_text and not all(self._is_known(i, self.key_of(i)) for i in items):
            raise self._may_not_send()
        stop, seen = Event(), set[str]()
        waiting: deque[Future[_Asked]] = deque()
        row = iter(items)
        pool = ThreadPoolExecutor(self.options.concurrency, f"worker-{self.id}")
        in_vain = lost = 0
        try:
            while True:
                while len(waiting) < 2 * self.options.concurrency:
                    item = next(row, None)
                    if item is None:
                        break
                    key = self.key_of(item)
                    waiting.append(pool.submit(self._asked, item, key, key in seen, stop))
                    seen.add(key)
                if not waiting:
                    return
                found = waiting.popleft().result()
                if found.is_served is not None:
                    in_vain = 0 if found.is_served else in_vain + 1
                    lost = lost + 1 if found.answer.missing else 0
                if lost >= IN_VAIN:
                    raise InputError(
                        f"worker {self.id}: no reply about {IN_VAIN} items in a row could be used, "
                        f"though they may have been paid (the last one: {found.answer.missing}); "
                        "look into the prompt, schema and max_output before you run again: what "
                        "was answered is kept"
                    )
                if in_vain >= CIRCUIT:
                    raise InputError(
                        f"worker {self.id}: {CIRCUIT} items in a row got no answer of {self._where}"
                        f" (the last one: {found.answer.missing}); what was answered is kept: run "
                        "again later"
                    )
                yield found.answer
        finally:
            stop.set()
            for one in waiting:
                one.cancel()
            pool.shutdown(wait=True)

    def forget_missing(self, items: Sequence[PoolItem]) -> int:
        """Forget the replies about items that have no answer, so that they are asked again."""
        n = 0
        for item in items:
            key = self.key_of(item)
            with self._replies.lock(key, Event()):
                stored = self._stored(item, key)
                if stored and stored.missing:
                    self._replies.forget(key)
                    n += 1
        return n

    def facts(self) -> dict[str, Any]:
        """Return the model and its versions, the prompt, whether the model changed silently."""
        models = self._replies.models(self._asked_as)
        return {
            "model": self.options.model,
            "prompt": self.prompt_hash,
            "models": [
                {"model": model, "fingerprint": mark, "replies": n} for model, mark, n in models
            ],
            "drift": len({model for model, _, _ in models if model}) > 1,
            "sent": len(self._sent),  # calls, since it was opened
            "retried": sum(self._sent),
            "unsettled": self._replies.unsettled(self._asked_as),
        }

    @property
    def _where(self) -> str:
        return str(self.options.base_url)

    def _may_not_send(self) -> InputError:
        where = "which is on this machine" if is_local(self._where) else "which is elsewhere"
        return InputError(
            f"worker {self.id} would send the texts of the items to {self._where}, {where}: say "
            "that they may be sent, with send_text = true in a plan, --send-text on the command "
            "line; nothing was sent"
        )

    def _asked(self, item: PoolItem, key: str, is_twin: bool, stop: Event) -> _Asked:
        """Ask about an item, or take what is there; a twin has the text of an item before it."""
        if self._is_blank(item):
            return _Asked(ItemAnswer(item.id, missing="the item has no text; nothing was sent"))
        try:
            with self._replies.lock(key, stop):
                is_new, refused = False, ""
                for sample in range(self.options.samples):
                    try:
                        is_new |= self._sampled(item, key, sample, stop)
                    except (NotServedError, NotTakenError) as error:
                        refused = str(error)
                        break
                if refused:
                    used = Usage() if is_twin else self._used(key)
                    missing = ItemAnswer(item.id, missing=refused, usage=used)
                    return _Asked(priced(self, item, missing), is_served=False)
                answer = self._answer(item, key, is_new=is_new)
        except StoppedError:
            return _Asked(ItemAnswer(item.id, missing="stopped"))
        if is_twin:
            answer = replace(answer, usage=Usage(), repeated=True)
        return _Asked(priced(self, item, answer), is_served=True if is_new else None)

    def _sampled(self, item: PoolItem, key: str, sample: int, stop: Event) -> bool:
        """See to it that a sample is there, or as good as it gets; whether something was sent."""
        is_new = False
        while not (heard := self._heard(item, key, sample)).is_over:
            # A call that was cut off is sent again under its own name.
            cut = [call.attempt for call in heard.calls if call.state == SENT]
            self._send(item, key, sample, cut[0] if cut else len(heard.calls), stop)
            self._sent.append(bool(heard.calls))
            is_new = True
        return is_new

    def _send(self, item: PoolItem, key: str, sample: int, attempt: int, stop: Event) -> None:
        """Send a call and keep its reply."""
        if not self.task.send_text:
            raise self._may_not_send()
        if stop.is_set():
            raise StoppedError
        again = self.options.samples * attempt  # the same seed would bring the same faulty reply
        body = self._body(self.prompt.messages(item), sample + again)
        self._replies.begin(key, sample, attempt, self._asked_as)
        try:
            found = self._endpoint.ask(body, f"{key}-{sample}-{attempt}", stop)
        except MaybePaidError as error:
            kept = {"fault": f"lost: {error}", "usage": asdict(self._bound(item))}
            self._replies.end(key, sample, attempt, LOST, kept)
        except BaseException as error:
            self._replies.drop(key, sample, attempt)
            if isinstance(error, NotServedError) and error.is_final:
                raise self._stopped(error, stop) from None
            if isinstance(error, NotTakenError) and error.status in _HOPELESS:
                raise self._stopped(error, stop) from None
            raise
        else:
            self._replies.end(key, sample, attempt, DONE, self._kept(found, self._bound(item)))

    def _stopped(self, error: Exception, stop: Event) -> InputError:
        stop.set()  # the other threads send nothing more
        return InputError(
            f"worker {self.id}: {self._where}: {error}; nothing more is sent, what was answered is "
            "kept"
        )

    def _kept(self, found: Mapping[str, Any], bound: Usage) -> dict[str, Any]:
        """Return what is kept of a reply; its words are read anew every time."""
        kept: dict[str, Any] = {
            "model": self._endpoint.shown(_text(found.get("model"))),
            "fingerprint": self._endpoint.shown(_text(found.get("system_fingerprint"))),
            "usage": asdict(_usage(found.get("usage"), bound)),
        }
        try:
            content, tokens = _content(found)
            kept |= {"content": content}
            if tokens and self.options.logprobs:
                kept |= {"tokens": tokens}
        except InvalidReplyError as error:
            kept |= {"fault": str(error)}
        return kept

    def _used(self, key: str) -> Usage:
        """Return what all calls about an item used, also those that count no more."""
        samples = range(self.options.samples)
        calls = (call for sample in samples for call in self._replies.calls(key, sample))
        return sum((Usage(**call.reply["usage"]) for call in calls if call.reply), Usage())

    def _answer(self, item: PoolItem, key: str, *, is_new: bool) -> ItemAnswer:
        """Make one answer of the replies that are there."""
        heard = [self._heard(item, key, sample) for sample in range(self.options.samples)]
        readings = [one.reading for one in heard if one.reading is not None]
        used = self._used(key)
        if readings:
            answer = pooled(item, readings, self.task.questions)
        else:
            why = f"{heard[-1].wrong} (after {used.calls} calls)"
            answer = ItemAnswer(item.id, missing=why, unplaced=heard[-1].wrong.unplaced)
        answer = replace(answer, unplaced=tuple(map(self._endpoint.shown, answer.unplaced)))
        if answer.spans is not None and self.options.samples == 1:  # it decided, however sure
            tags = written(answer.spans, len(item.tokens), self.task.codec)
            answer = replace(answer, tags=tags)
        return replace(answer, usage=used, repeated=not is_new)


_HOPELESS = frozenset({401, 402, 403, 404, 405})
"""Statuses that other items would get too."""


def canonical(value: Any) -> str:
    """Return a value as JSON that is the same for the same value."""
    return json.dumps(value, ensure_ascii=False, sort_keys=True)


def pooled(
    item: PoolItem, readings: Sequence[Reading], questions: Questions | None = None
) -> ItemAnswer:
    """Make one soft answer of the samples: the mean of what they say, of layers what most say.

    >>> from goldspan.annotators.prompt import Reading
    >>> one, none = Reading((SoftSpan("PER", 0, 1),)), Reading(())
    >>> pooled(PoolItem("1", ("Ann",)), [one, one, one, none]).spans
    (SoftSpan(type='PER', start=0, end=1, probability=0.75),)
    """
    unplaced = tuple(word for one in readings for word in one.unplaced)
    n = len(readings)
    if questions is not None:
        said = [one.layers or {} for one in readings]
        layers = questions.majority(said, complete=True)
        return ItemAnswer(item.id, layers=layers, unplaced=unplaced)
    if readings[0].classes is not None:
        names = dict.fromkeys(name for one in readings for name in one.classes or {})
        shares = {k: fmean((one.classes or {}).get(k, 0.0) for one in readings) for k in names}
        return ItemAnswer(item.id, classes=shares, unplaced=unplaced)
    total: Counter[tuple[str, int, int]] = Counter()
    for one in readings:
        for span in one.spans or ():
            total[span[:3]] += span.probability  # type: ignore[assignment]
    found = [SoftSpan(*place, round(p / n, 6)) for place, p in total.items()]
    order = sorted(found, key=lambda span: (span.start, span.end, span.type))
    doubts = Counter(token for one in readings for token in one.unsure)
    unsure = tuple(sorted(token for token, k in doubts.items() if 2 * k >= n))
    return ItemAnswer(item.id, spans=tuple(order), unplaced=unplaced, unsure=unsure)


def _content(found: Mapping[str, Any]) -> tuple[str, Sequence[Any]]:
    """Return the text of a reply and its tokens."""
    choices = found.get("choices")
    choice = choices[0] if isinstance(choices, list) and choices else None
    message = choice.get("message") if isinstance(choice, Mapping) else None
    if isinstance(choice, Mapping) and "text" in choice:  # of a completion
        message = {"content": choice["text"]}
    if not isinstance(choice, Mapping) or not isinstance(message, Mapping):
        raise InvalidReplyError("invalid: the reply has no message")
    if message.get("refusal"):
        raise InvalidReplyError("refused")
    if message.get("tool_calls") or message.get("function_call"):
        raise InvalidReplyError("invalid: it calls a tool, and there is none")
    ended = choice.get("finish_reason")
    if ended == "content_filter":
        raise InvalidReplyError("refused: the endpoint filters the content")
    if ended == "length":
        raise InvalidReplyError("cut: the reply is longer than max_output")
    content = message.get("content")
    if not isinstance(content, str) or not content.strip():
        raise InvalidReplyError("invalid: the reply is empty")
    sure = choice.get("logprobs")
    tokens = sure.get("content") if isinstance(sure, Mapping) else None
    return content, tokens if isinstance(tokens, list) else ()


def _usage(given: Any, bound: Usage) -> Usage:
    """Return what an endpoint says that a call used; the most where it does not say."""
    sent = given.get("prompt_tokens") if isinstance(given, Mapping) else None
    came = given.get("completion_tokens") if isinstance(given, Mapping) else None
    if type(sent) is int and type(came) is int and 0 <= sent < 2**40 and 0 <= came < 2**40:
        return Usage(1, sent, came)
    return bound


def _text(value: Any) -> str:
    """Return a name that a file and a screen can hold; "" for what is no text."""
    if not isinstance(value, str):
        return ""
    return "".join(char if char.isprintable() else "?" for char in value[:200])
