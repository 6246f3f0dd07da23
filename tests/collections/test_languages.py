"""The language of a collection: chosen, guessed, and fixed by its first index."""

import pytest

from apps.collections.editing import edit_collection
from apps.collections.importing import create_collection, import_documents
from apps.collections.languages import LanguageError
from apps.collections.records import DocumentRecord
from apps.retrieval.chunking import make_chunk_set
from apps.retrieval.models import Index
from apps.retrieval.search.full_text import make_full_text, search_full_text
from apps.retrieval.search.lexical_indexes import load_lexical_index, make_lexical_index
from benchbench.errors import ConflictError
from benchbench.texts.guessing import guess_language

pytestmark = pytest.mark.django_db
GERMAN = ["Die Häuser sind auf dem Berg.", "Wir haben das Wetter nicht gesehen.", "Ein Haus und eine Straße."]
ENGLISH = ["The houses are on the hill.", "We have not seen the weather."]
TEXTS = {
    **{"german": GERMAN, "english": ENGLISH, "french": ["Nous avons vu les maisons dans la rue."]},
    **{"spanish": ["Las casas que están en la calle."], "russian": ["Мы были в доме и не видели его."]},
    **{"ukrainian": ["Ми були в домі, але його ще не бачили."], "arabic": ["هذا هو البيت الذي في المدينة"]},
    **{
        "persian": ["این خانه‌ای است که در شهر می‌بینید"],
        "hindi": ["यह घर शहर में है और बड़ा है"],
        "turkish": ["Bu ev çok güzel ama şehir için değil."],
    },
    **{"chinese": ["忘记密码怎么办"], "japanese": ["東京都の猫です"], "korean": ["한국어 검색"], "thai": ["ภาษาไทย"]},
    **{"vietnamese": ["Đây là những ngôi nhà của chúng tôi."], "greek": ["Το σπίτι είναι εδώ."]},
}
# Short texts on the same subject in languages that are easily mistaken for one another, and in others without rules.
BROTHERS = {
    "swedish": ["Priserna gäller till slutet av månaden.", "Hur byter jag lösenord på sidan?"],
    "norwegian": ["Prisene gjelder ut måneden.", "Hvordan bytter jeg passord?"],
    "danish": ["Priserne gælder til udgangen af måneden.", "Hvordan skifter jeg adgangskode?"],
    "czech": ["Ceny platí do konce měsíce.", "Jak si změním heslo?"],
    "slovak": ["Ceny platia do konca mesiaca.", "Ako si zmením heslo?"],
    "croatian": ["Cijene vrijede do kraja mjeseca.", "Kako mogu promijeniti lozinku?"],
    "slovenian": ["Cene veljajo do konca meseca.", "Kako spremenim geslo?"],
    "serbian": ["Како да променим лозинку?", "Библиотека се затвара у осам", "Ђаци су у школи"],
    "bulgarian": ["Цените важат до края на месеца.", "Как да сменя паролата си?"],
    "russian": ["Цены действуют до конца месяца.", "Как изменить пароль?", "Дети играют в парке", "Поле не заполнено"],
    "ukrainian": ["Ціни діють до кінця місяця.", "Як змінити пароль?", "Поле не заповнено"],
    "urdu": ["قیمتیں مہینے کے آخر تک درست ہیں۔", "میں پاس ورڈ کیسے تبدیل کروں؟"],
    "persian": ["قیمت‌ها تا پایان ماه معتبر است.", "چگونه رمز عبور را تغییر دهم؟"],
    "marathi": ["किमती महिन्याच्या शेवटपर्यंत वैध आहेत.", "मी पासवर्ड कसा बदलू?"],
    "nepali": ["मूल्यहरू महिनाको अन्त्यसम्म मान्य छन्।", "म पासवर्ड कसरी परिवर्तन गर्छु?"],
    "azerbaijani": ["Qiymətlər ayın sonuna qədər qüvvədədir.", "Şifrəni necə dəyişim?"],
    "turkish": ["Fiyatlar ay sonuna kadar geçerlidir.", "Parolamı nasıl değiştiririm?"],
    "hungarian": ["Az árak a hónap végéig érvényesek.", "A könyvtár nyolckor zár"],
    "estonian": ["Hinnad kehtivad kuu lõpuni.", "Kuidas ma parooli vahetan?"],
    "german": ["Datenschutz", "Grundgesetz", "Mietvertrag kündigen", "Rentenversicherung"],
    "other": ["Бағалар айдың соңына дейін жарамды.", "Die pryse geld tot die einde van die maand."],
}


def imported(texts, **fields):
    collection = create_collection("library", **fields)
    import_documents(
        collection, [DocumentRecord(external_id=str(n), title="", text=text) for n, text in enumerate(texts)]
    )
    collection.refresh_from_db()
    return collection


@pytest.mark.parametrize("language", TEXTS)
def test_it_is_guessed_by_script_and_words(language):
    assert guess_language(TEXTS[language]).language == language


@pytest.mark.parametrize("language", BROTHERS)
def test_short_texts_are_told_from_their_brothers(language):
    guess = guess_language(BROTHERS[language])
    assert guess.language == language
    assert guess.agreeing > guess.sampled / 2


def test_languages_that_cannot_be_told_agree_less():
    guess = guess_language(["Harga sah sehingga akhir bulan.", "Bagaimana saya menukar kata laluan?"])
    assert (guess.language, guess.agreeing, guess.sampled) == ("malay", 1, 2)


@pytest.mark.parametrize(
    "texts",
    [
        *([], ["", "42"], ["Zxqv brrt"], [ENGLISH[0], GERMAN[0]], ["def f(x): return x", "SELECT a, b FROM c"]),
        *(
            ["iPhone 15 Pro Max 256GB", "Sony WH-1000XM5 black"],
            ["12 kg", "1.5 2.6"],
            ["Müller", "Ivanov", "López", "Nguyễn An"],
        ),
    ],
)
def test_texts_without_a_common_language_have_none(texts):
    assert guess_language(texts) is None


def test_an_import_shows_the_share_of_its_guess():
    collection = imported([*GERMAN, ENGLISH[0]])
    assert collection.language_words == "German, 75 % of 4 sampled documents; all in its script are read as German"
    import_documents(collection, [DocumentRecord(external_id="0", title="", text=ENGLISH[0])], remove_missing=True)
    assert collection.language_words == "English, 100 % of 1 sampled document"


def test_a_chosen_language_stays():
    assert imported(GERMAN, language="NL").language_words == "Dutch"


def test_an_unknown_language_is_refused():
    with pytest.raises(LanguageError, match="'klingon' is not a language"):
        create_collection("library", language="klingon")


def test_it_changes_until_an_index_exists():
    collection = imported(GERMAN)
    edit_collection(collection, language="danish")
    assert collection.language_words == "Danish"
    edit_collection(collection, language="")
    assert collection.language == "german"
    Index.objects.create(collection=collection, name="words")
    edit_collection(collection, language="de")
    with pytest.raises(ConflictError, match="cannot change while it has indexes"):
        edit_collection(collection, language="danish")


def test_lexical_search_reads_words_in_the_language():
    chunks = make_chunk_set(imported(GERMAN), strategy="flat", parameters={})
    words, full_text = load_lexical_index(make_lexical_index(chunks)), make_full_text(chunks)
    assert [ranked.ids.tolist() for ranked in words.search(["HAUS", "Strasse", "das"], 5)] == [[0, 2], [2], []]
    assert sorted(search_full_text(full_text, ["Haus"], 5)[0].ids.tolist()) == [0, 2]


def test_languages_have_different_stored_indexes():
    collection = imported(GERMAN)
    chunks = make_chunk_set(collection, strategy="flat", parameters={})
    german = make_lexical_index(chunks)
    collection.language = "danish"
    collection.save()
    chunks.refresh_from_db()
    assert make_lexical_index(chunks) != german
    assert load_lexical_index(german).analyzer.language == "german"
