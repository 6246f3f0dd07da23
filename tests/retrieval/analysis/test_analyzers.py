"""Analyzers of every language keep one contract; each family has the normalisations of Lucene."""

import unicodedata
from importlib.util import find_spec

import pytest
import regex
from hypothesis import given
from hypothesis import strategies as st

from apps.retrieval.analysis.analyzers import WORDS, build_analyzer
from apps.retrieval.analysis.languages import LANGUAGES
from apps.retrieval.analysis.segmenting import ASCII_TOKEN, split_unicode
from apps.retrieval.analysis.stopping import MAX_WORDS, read_stop_list
from benchbench.texts import languages
from benchbench.texts.scripts import PERHAPS_UNSPACED, SPACED_TOKEN, TOKEN
from benchbench.texts.words import fold

SAMPLES = {
    **{"german": "Über die Größe der Häuser", "turkish": "İstanbul'da IŞIK", "french": "L'école d'été à Orléans"},
    **{
        "russian": "Ёлки и дома",
        "greek": "Οι οδοί της Αθήνας",
        "arabic": "تُسلَّم الطرود خلال أيّام",
        "hindi": "हिन्दी की किताबें",
    },
    **{
        "persian": "کتاب‌ها می‌خواهم",
        "chinese": "忘记密码怎么办",
        "japanese": "東京都のラーメン",
        "korean": "한국어 검색",
    },
    **{"thai": "ภาษาไทย ๓๔", "vietnamese": "Tiếng Việt có dấu", "english": "The naïve café's menus"},
}


def analyze(text, language="other", **options):
    return build_analyzer(language, **{"words": "unicode", **options}).analyze(text)


@pytest.fixture(params=[*LANGUAGES])
def language(request):
    return request.param


class TestAnAnalyzer:
    def test_it_belongs_to_a_language_of_collections(self):
        assert set(LANGUAGES) == set(languages.NAMES)

    def test_unicode_forms_and_widths_are_alike(self, language):
        text = " ".join([*SAMPLES.values(), "ＡＢＣ ﬁne 42"])
        terms = analyze(text, language)
        assert all(analyze(unicodedata.normalize(form, text), language) == terms for form in ("NFC", "NFD", "NFKC"))

    def test_invisible_signs_within_words_count_for_nothing(self, language):
        words = analyze("password пароль", language)
        for sign in ("\u00ad", "\u200b", "\u200d", "\u2060", "\ufeff"):
            assert analyze(f"pass{sign}word пар{sign}оль", language) == words, ascii(sign)

    def test_case_makes_no_difference(self, language):
        text = "Café Zürn Мор"
        assert analyze(text.upper(), language) == analyze(text, language) == analyze(text.lower(), language)

    def test_short_words_and_numbers_stay(self, language):
        text = "B-12 256 GB iphone15 x C 7 ३ 猫"
        words = ["b", "12", "256", "gb", "iphone15", "x", "c", "7", "3", "猫"]
        assert analyze(text, language, stop="none", stem="none") == words

    def test_marks_stay_with_their_letters(self, language):
        words = build_analyzer(language, words="unicode").split("किताबें مُحَمَّد Việt ภาษา")
        assert not any(unicodedata.category(word[0]).startswith("M") for word in words)

    def test_a_chain_read_twice_folds_alike(self, language):
        analyzer = build_analyzer(language, words="unicode", stop="none", stem="none")
        once = analyzer.analyze(" ".join(SAMPLES.values()))
        assert analyzer.analyze(" ".join(once)) in (once, [term for word in once for term in analyzer.analyze(word)])

    def test_a_word_has_one_term_wherever_it_is(self, language):
        analyzer = build_analyzer(language)
        words = analyzer.split(" ".join(SAMPLES.values()))
        assert analyzer.finish(words) == [analyzer.finish([word])[0] for word in words]

    def test_stop_words_are_few_and_go(self, language):
        _, words = read_stop_list(language)
        assert len(words) <= MAX_WORDS
        analyzer = build_analyzer(language)
        assert not any(analyzer.finish([word for each in words for word in analyzer.split(each)]))

    def test_it_names_its_packages(self, language):
        analyzer = build_analyzer(language, words="unicode")
        assert "regex" in analyzer.versions
        assert ("PyStemmer" in analyzer.versions) == bool(LANGUAGES[language].stemmer)


@pytest.mark.parametrize(
    ("language", "alike"),
    [
        ("german", "Straße STRASSE strasse"),
        ("german", "Müller Mueller MÜLLER"),
        ("german", "Häuser Haus"),
        ("turkish", "IŞIK ışık"),
        ("turkish", "İzmir izmir İZMİR'de"),
        ("turkish", "MİLLÎ millî MI\u0307LLI\u0302"),
        ("french", "l'école École d’école écoles"),
        ("italian", "l'università università"),
        ("romanian", "ştiinţă știință"),
        ("russian", "ёлка елка"),
        ("serbian", "Школа škola skola"),
        ("greek", "ΟΔΟΣ οδός"),
        ("arabic", "أحمد احمد اَحْمَد احـــمد"),
        ("arabic", "مدرسة مدرسه"),
        ("persian", "كتاب کتاب کتابها"),
        ("hindi", "हिन्दी हिंदी हिँदी"),
        ("hindi", "अंगरेज़ी अंगरेजी"),
        ("english", "café's cafés cafe\u0301"),
        ("vietnamese", "Việt Vie\u0302\u0323t VIỆT"),
        ("vietnamese", "hòa hoà HÒA"),
        ("vietnamese", "thủy thuỷ"),
        ("other", "ﾃﾞｰﾀ データ"),
        ("french", "cœur coeur CŒUR"),
        ("french", "l´eau l’eau eau"),
        ("irish", "nAthair n-athair athair"),
        ("irish", "hÉireann Éireann"),
        ("croatian", "kuća kuca"),
        ("ukrainian", "п'ять п’ять пʼять п`ять п′ять"),
        ("russian", "зна\u0301ние знание"),
        ("bulgarian", "за\u0301мък замък"),
        ("greek", "ἄνθρωπος άνθρωπος ΑΝΘΡΩΠΟΣ"),
        ("greek", "ΣΊΣΥΦΟΣ Σίσυφος σίσυφος"),
        ("armenian", "ինչպե՞ս ինչպես ԻՆՉՊԵՍ"),
        ("armenian", "և եւ"),
        ("hebrew", "ג׳ירפה ג'ירפה ג’ירפה"),
        ("hebrew", 'צה״ל צה"ל'),
        ("hebrew", "שָׁלוֹם שלום"),
        ("arabic", "کتاب كتاب"),
        ("other", "کوردی كوردي"),
        ("bengali", "উৎসব উত্\u200dসব"),
        ("malayalam", "അവൻ അവന്\u200d"),
        ("malayalam", "എന്റെ എന്\u200dറെ"),
        ("sinhala", "ශ්\u200dරී ශ්රී"),
        ("thai", "เเม่ แม่"),
        ("lao", "ນໍ້າ ນ້ຳ"),
        ("other", "ʻōlelo ōlelo"),
        ("other", "Hawaiʻi Hawai'i Hawai‘i Hawai’i"),
        ("other", "iPhone™ iPhone"),
        ("other", "m² m2"),
        ("other", "ᲡᲐᲥᲐᲠᲗᲕᲔᲚᲝ საქართველო"),
        ("dutch", "ĳs ijs IJS"),
        ("azerbaijani", "IŞIQ ışıq"),
        ("catalan", "col·lecció COL·LECCIÓ"),
        ("other", "٤٢ 42 ४२ ４２"),
    ],
)
def test_spellings_meet(language, alike):
    assert len({*map(tuple, ([*dict.fromkeys(analyze(word, language))] for word in alike.split()))}) == 1


@pytest.mark.parametrize(
    ("language", "forms"),
    [
        ("bulgarian", "книга книгите"),
        ("croatian", "knjiga KNJIGAMA"),
        ("finnish", "salasana salasanoja"),
        ("hebrew", "ספר ספרים"),
        ("malay", "membayar dibayar"),
        ("other", "წიგნი წიგნებს"),
        ("other", "መጽሐፍ መጽሐፎችን"),
        ("serbian", "књига knjige"),
        ("swahili", "kitabu vitabu"),
        ("swedish", "lösenord lösenordet"),
        ("telugu", "పుస్తకం పుస్తకాలను"),
        ("turkish", "fatura faturalar"),
        ("ukrainian", "пароль паролем"),
    ],
)
def test_forms_of_a_word_share_pieces(language, forms):
    first, second = (set(build_analyzer(language).analyze(form)) for form in forms.split())
    assert len(first & second) >= len(first) / 3


def test_pieces_have_the_edges_of_words():
    analyzer = build_analyzer("other", "fourgrams")
    assert analyzer.analyze("Ünits 2026 a iphone15 猫背") == [
        *("_üni", "ünit", "nits", "its_", "2026", "_a_", "_iph", "ipho", "phon", "hone", "one1", "ne15", "e15_"),
        "_猫背_",
    ]
    assert not build_analyzer("swedish", "fourgrams").analyze("och att")


@pytest.mark.parametrize(("options", "expected"), [({}, 2), ({"stem": "none"}, 2), ({"stem": "swedish"}, 1)])
def test_a_stemmer_replaces_pieces(options, expected):
    assert len(build_analyzer("swedish", **options).analyze("bok")) == expected


@pytest.mark.parametrize(
    ("language", "different"),
    [
        ("turkish", "ısı isi"),
        ("german", "neue nue"),
        ("spanish", "año ano"),
        ("german", "Waren waren aren"),
        ("other", "10² 102"),
        ("other", "5½ 512"),
    ],
)
def test_other_words_stay_apart(language, different):
    terms = [tuple(analyze(word, language, stop="none")) for word in different.split()]
    assert len(set(terms)) == len({word.lower() for word in different.split()})


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("東京都の猫", ["東京", "京都", "都の", "の猫"]),
        ("猫 iPhoneの箱", ["猫", "iphone", "の箱"]),
        ("한국어 검색", ["한국", "국어", "검색"]),
        ("น้ำ ไทย", ["น้ํา", "ไท", "ทย"]),
        ("ພາສາ", ["ພາ", "າສ", "ສາ"]),
        ("ไทย๒๕๖๗ปี", ["ไท", "ทย", "๒๕๖๗", "ปี"]),
        ("can't U.S.A. 3.14 1,000 v1.2b", ["can't", "u.s.a", "3.14", "1,000", "v1.2b"]),
        ("a.b@c.de foo_bar x/y", ["a.b", "c.de", "foo_bar", "x", "y"]),
    ],
)
def test_texts_are_divided(text, words):
    assert split_unicode(fold(text)) == words


def test_parts_of_persian_words_are_words():
    assert analyze("کتاب‌ها", "persian") == ["کتاب", "ها"]


@given(st.text(st.characters(max_codepoint=0x52F, exclude_characters="'", exclude_categories=["Sk", "Cs"])))
def test_words_are_those_of_unicode(text):
    """As regex finds the boundaries of UAX #29, which it changes at an apostrophe; others have no letter or digit.

    Marks without a letter before them, as at the beginning of a text, belong to no word.
    """
    folded = fold(text)
    pieces = [regex.sub(r"\A\p{M}+", "", piece) for piece in regex.split(r"(?wV1)\b", folded)]
    assert split_unicode(folded) == [piece for piece in pieces if regex.search(r"[\p{L}\p{N}_]", piece)]


@given(st.text())
def test_fast_patterns_divide_as_the_full_one(text):
    folded = fold(text)
    full = [match[0] for match in TOKEN.finditer(folded)]
    if folded.isascii():
        assert ASCII_TOKEN.findall(folded) == full
    if not PERHAPS_UNSPACED.search(folded):
        assert SPACED_TOKEN.findall(folded) == full


ENGLISH = build_analyzer("english")


@pytest.mark.parametrize(
    "alike",
    [
        *(
            "café cafe\u0301 CAFÉ",
            "pass\u00adword password",
            "eﬃcient efficient",
            "ＡＢＣ abc",
            "Hawaiʻi Hawai’i Hawai'i",
        ),
        *("iPhone™ iPhone", "книги книга", "हिन्दी हिंदी", "忘记密码 忘记密码"),
    ],
)
def test_english_reads_spellings_and_scripts(alike):
    terms = [ENGLISH.analyze(word) for word in alike.split()]
    assert terms[0]
    assert all(each == terms[0] for each in terms)


def test_english_divides_texts_in_other_scripts():
    assert ENGLISH.analyze("The log 忘记密码怎么办 café 7") == [
        "log",
        "忘记",
        "记密",
        "密码",
        "码怎",
        "怎么",
        "么办",
        "café",
    ]
    assert ENGLISH.analyze("TNF-α x̄ κB") == ["tnf", "x̄", "κb"]


@given(st.text(st.characters(max_codepoint=0x7F)))
def test_english_reads_ascii_as_published(text):
    assert ENGLISH.analyze(text) == build_analyzer("english", "plain").analyze(text)


def test_identifiers_in_any_script_are_divided():
    terms = analyze("ПолучитьИмя größeÄndern किताबें", words="code")
    assert terms == ["получитьимя", "получить", "имя", "grösseändern", "grösse", "ändern", "किताबें"]


def test_identifiers_are_divided_and_kept():
    terms = analyze("getUserName SPM_NOTIFICATION x86 HTTPServer plain", words="code")
    assert terms == [
        *("getusername", "get", "user", "name", "spm_notification", "spm", "notification"),
        *("x86", "x", "86", "httpserver", "http", "server", "plain"),
    ]


def test_foreign_scripts_are_read_by_their_languages():
    assert analyze("Häuser домами", "german") == [*analyze("Häuser", "german"), *analyze("домами", "russian")]


@pytest.mark.parametrize(
    ("words", "text"),
    [("sudachipy", "東京都へ行った"), ("rjieba", "忘记密码"), ("kiwipiepy", "학교에서"), ("pythainlp", "ภาษาไทย")],
)
def test_dictionaries_of_optional_packages_divide(words, text):
    if any(find_spec(module) is None for module in WORDS[words].packages.values()):
        pytest.skip(f"{words} is not installed")
    terms = build_analyzer("other", words=words).analyze(text)
    assert 0 < len(terms) < len(text)
