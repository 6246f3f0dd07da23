"""Languages of documents, by name, with their ISO 639 codes."""

LANGUAGES = {
    **{"arabic": "ar", "armenian": "hy", "azerbaijani": "az", "basque": "eu", "bengali": "bn", "bulgarian": "bg"},
    **{"burmese": "my", "catalan": "ca", "chinese": "zh", "croatian": "hr", "czech": "cs", "danish": "da"},
    **{"dutch": "nl", "english": "en", "esperanto": "eo", "estonian": "et", "finnish": "fi", "french": "fr"},
    **{"german": "de", "greek": "el", "gujarati": "gu", "hebrew": "he", "hindi": "hi", "hungarian": "hu"},
    **{"indonesian": "id", "irish": "ga", "italian": "it", "japanese": "ja", "kannada": "kn", "khmer": "km"},
    **{"korean": "ko", "lao": "lo", "latvian": "lv", "lithuanian": "lt", "malay": "ms", "malayalam": "ml"},
    **{"marathi": "mr", "nepali": "ne", "norwegian": "no", "persian": "fa", "polish": "pl", "portuguese": "pt"},
    **{"punjabi": "pa", "romanian": "ro", "russian": "ru", "serbian": "sr", "sesotho": "st", "sinhala": "si"},
    **{"slovak": "sk", "slovenian": "sl", "spanish": "es", "swahili": "sw", "swedish": "sv", "tamil": "ta"},
    **{"telugu": "te", "thai": "th", "tibetan": "bo", "turkish": "tr", "ukrainian": "uk", "urdu": "ur"},
    **{"vietnamese": "vi", "yiddish": "yi"},
}
DEFAULT = "english"  # of a collection without a language
UNKNOWN = "other"  # a language without a treatment of its own
NAMES = (*LANGUAGES, UNKNOWN)
BY_CODE = {code: name for name, code in LANGUAGES.items()} | {"nb": "norwegian", "nn": "norwegian"}


def find_language(text: str) -> str | None:
    """Return the name of a language from its name or code, in any case; None for an unknown one."""
    word = text.strip().lower()
    return word if word in NAMES else BY_CODE.get(word)


def list_choices() -> list[tuple[str, str]]:
    """Return the languages with their names as choices of a field."""
    return [(name, name.capitalize()) for name in NAMES]
