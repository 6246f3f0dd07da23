"""Random names of measures: right ones, nearly right ones, and anything."""

from hypothesis import strategies as st

from benchbench.ir.measures import DEFINITIONS
from benchbench.ir.measures.library import list_measures

KINDS = {kind.name: [name for name in kind.parameters.split(", ") if name] for kind in list_measures()}
NUMBERS = st.sampled_from(["0", "1", "2", "4", "10", "007", "-1", "1.5", ".5", "0.33", "1e9", "9" * 30, "9" * 5000])
ODD_VALUES = st.sampled_from(["True", "None", "'log2'", "'exp-log2'", "{0:1}", "{1:-1}", "[1]", "inf", "x", "1)", "²"])
ANYTHING = st.text(st.sampled_from("nDCGPR@().,=0123456789 {}[]'\"\\\n\0²αé-"), max_size=12) | st.text(max_size=8)


@st.composite
def names(draw: st.DrawFn) -> str:
    """A name of any measure with some parameters, most of them as its kind takes them, and perhaps a cutoff."""
    personal = st.sampled_from([*DEFINITIONS, "ndcg", "recall", "MRR", "map", "Precision"])
    name = draw(personal | st.sampled_from(sorted(KINDS)) | ANYTHING)
    takes = [*KINDS.get(name, []), "q"]
    chosen = draw(st.lists(st.sampled_from(takes), max_size=3, unique="max_rel" in takes))
    parameters = [f"{parameter}={draw(NUMBERS | ODD_VALUES)}" for parameter in chosen]
    if "max_rel" in takes and draw(st.integers(0, 3)):
        parameters.append("max_rel=4")
    brackets = f"({','.join(parameters)})" if parameters else ""
    return name + brackets + draw(st.just("") | st.builds("@{}".format, NUMBERS) | st.just("@5") | st.just("@x"))
