"""Parameters of encoders: the prompts before texts, and the precision of the products."""

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from hashlib import sha256
from typing import Literal, get_args

Precision = Literal["float32", "mixed", "bfloat16", "float16"]
PRECISIONS: tuple[str, ...] = get_args(Precision)
LONGEST_PROMPT = 1_000  # characters


@dataclass(frozen=True, slots=True)
class EncoderParameters:
    """The prompts and the precision of an encoder. A prompt None is that of the model's configuration.

    With `mixed` precision, products are in bfloat16 and the rest in float32, as in torch's autocast. The half
    precisions keep the weights in bfloat16 or float16 too. Vectors are float32 in each.
    """

    query_prompt: str | None = None
    document_prompt: str | None = None
    precision: str = "float32"

    def list_changes(self) -> dict[str, str]:
        """Return the parameters other than the model's, by name."""
        return {name: value for name, value in asdict(self).items() if value != getattr(DEFAULT, name)}

    def name_space(self, revision: str, model_prompts: tuple[str, str]) -> str:
        """Return the revision of a model with what makes its vectors others: the precision, and a hash of the prompts.

        `model_prompts`, for queries and documents, are those of the model's configuration.
        """
        return " ".join([revision, *self.yield_differences(model_prompts)])

    def yield_differences(self, model_prompts: tuple[str, str] = ("", "")) -> Iterator[str]:
        """Yield what makes vectors others than those of the model with its prompts."""
        if self.precision != "float32":
            yield self.precision
        prompts = self.choose_prompts(model_prompts)
        if prompts != model_prompts:
            yield f"prompts {sha256(json.dumps(prompts).encode()).hexdigest()[:12]}"

    def choose_prompts(self, model_prompts: tuple[str, str]) -> tuple[str, str]:
        """Return the prompts of queries and of documents; those of the model for None."""
        query, document = model_prompts
        return (
            query if self.query_prompt is None else self.query_prompt,
            document if self.document_prompt is None else self.document_prompt,
        )


DEFAULT = EncoderParameters()
