"""Collections in six languages, imported and searched by words as a user does who chooses nothing."""

import pytest

from apps.collections.models import Collection
from apps.records.models import Evaluation
from tests.commands import output_of

# nDCG@10 of BM25 with suitable tokens; by the rules of English, German has .46, Arabic .50 and Chinese .00.
EXPECTED = {"en": ("english", 1.0), "de": ("german", 1.0), "tr": ("turkish", 1.0), "ar": ("arabic", 0.9)}
EXPECTED |= {"hi": ("hindi", 0.96), "zh": ("chinese", 1.0)}


@pytest.mark.thorough
@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("code", EXPECTED)
def test_words_of_a_language_are_found(shared_data, code):
    folder = shared_data.parent / "cases" / "languages" / code
    if not folder.is_dir():
        pytest.skip(f"There is no {folder}: put the small collections there.")
    output_of("import_beir", folder, "--name", code, "--no-vectors")
    output_of("run_benchmark", code, "--wait")
    language, value = EXPECTED[code]
    assert Collection.objects.get().language == language
    assert Evaluation.objects.get().means["nDCG@10"] >= value
