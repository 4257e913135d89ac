"""Lines such as people bring: what a tokenizer, a file or a page may damage is in every one."""

from __future__ import annotations

import random

_PIECES = {
    "apostrophes": ["Toyota's", "rock ’n’ roll", "l'État", "3M's", "O'Neill", "don’t", "'tis"],
    "hyphens": ["Apple-Watch-Hülle", "Coca‑Cola", "e-mail–Adresse", "AK-47", "re–elect", "-5"],
    "addresses": [
        "https://www.apple.com/de/shop?q=a&b=%20#top",
        "www.apple.com",
        "ann.lee+news@example.org",
        "foo_bar@sub-domain.example",
        "http://例え.jp/~x",
    ],
    "emoji": ["👍🏽", "👩🏿‍🚀", "👨‍👩‍👧‍👦", "🏳️‍🌈", "🇩🇪🇫🇷", "1️⃣", "❤️", "🤷🏻‍♀️"],
    "combining": [
        "Cafe\u0301", "Ko\u0308ln", "Z\u0351\u036baͅlgo", "n\u0303andu\u0301","Å A\u030a"
    ],
    "scripts": [
        "شركة أبل في الرِّياض",
        "תל־אביב וצה״ל",
        "微软公司在北京",
        "東京タワーへ行った。",
        "ドコモ㈱のｶﾀｶﾅ",
        "กรุงเทพมหานครน้ำ",
        "삼성전자는 서울에",
        "हिन्दी क्षेत्र",
        "ភ្នំពេញ",
        "မြန်မာ",
        "ລາວ",
        "Ελλάδα",
        "Щёлково",
    ],
    "compounds": [
        "Donaudampfschifffahrtsgesellschaftskapitän",
        "Straßenbahn-Haltestelle",
        "Rindfleischetikettierungsüberwachungsaufgabenübertragungsgesetz",
        "GROẞE",
    ],
    "words": [
        "Rome", "is", "old", "and", "Ann", "Lee", "likes", "foo_bar", "v2.0", "1,000.50", "U.S.A.",
        "100%", "$5", "€3.99", "C++", "C#", "50°C", "½", "“quoted”", '"straight"', "«guillemets»",
        "ﬁne", "a/b", "x=y", "<b>bold</b>", "&amp;", "#tag", "@name", "\\n", "{json}", "[x]", "`c`",
    ],
}  # fmt: skip
_GAPS = [" ", " ", " ", " ", "  ", "\u00a0", "\u3000", "\t", " \t ", "\u202f", "\u2009", "", ", "]
_ENDS = ["", "", "", ".", "!", "…", " ", "\u00a0", "  ", "\t"]


def own_texts(n: int = 300, seed: int = 0) -> list[str]:
    """Return texts of one line each: no two are alike, and each has a character to select.

    Among them are apostrophes, hyphens, addresses, emoji of several code points, combining marks,
    double, non-breaking and ideographic spaces, tabs, white space at either end, and scripts of
    either direction, with and without spaces. No text holds a line break of any kind.

    Args:
        n: How many.
        seed: The same texts for the same seed.
    """
    draw = random.Random(seed)
    kinds = list(_PIECES)
    found: dict[str, None] = {}
    while len(found) < n:
        # Every kind comes again after so many lines, whatever the seed.
        pieces = [draw.choice(_PIECES[kinds[len(found) % len(kinds)]])]
        while len(pieces) < 3 or (len(pieces) < 12 and draw.random() < 0.7):
            pieces.append(draw.choice(_PIECES[draw.choice(kinds)]))
        draw.shuffle(pieces)
        text = draw.choice(["", "", "", "", " ", "\u00a0", "\u3000"])
        for piece in pieces:
            text += piece + draw.choice(_GAPS)
        found[text + draw.choice(_ENDS)] = None
    return list(found)
