"""Texts to train the small tokenizers of make_tokenizers.py, and texts to test them.

All of them are written for this project, or made from these by a seeded generator.
"""

from __future__ import annotations

import random

from seed import SEED

SENTENCES = [
    "The fox ran over the hill, and the hen looked at the fox with one eye.",
    "Once there was a small lamp that wanted to light the whole house by itself.",
    "Tom's sister said they'd come back when the rain stopped; we'll see if she's right.",
    "I'm not sure you've seen it, but he'd said it's what they're looking for.",
    "A token is a number that stands for some letters, and letters are numbers too.",
    "In 1987 the tower was 123 metres high; in 2024 it was 4,567.89 metres, they say.",
    "Le garçon à la fenêtre a mangé une pêche, déjà très mûre, et l'été s'en va.",
    "Über die Brücke fährt ein größerer Zug, süß wie die Straße im Frühling.",
    "El niño pequeño comió la piña mañana por la mañana. ¿Quién sabe? ¡Nadie!",
    "Zażółć gęślą jaźń, powiedział żółw i poszedł spać pod łóżko.",
    "Маленькая лиса бежала по снегу, а за ней шёл старый медведь.",
    "Η μικρή αλεπού τρέχει στο δάσος, και ο ήλιος δύει πίσω από το βουνό.",
    "小狐狸跑过山坡，看见一只母鸡在树下睡觉。它说：你好！",
    "小さな狐が森の中を走っていました。カタカナとひらがなと漢字。",
    "작은 여우가 언덕을 넘어 달려갔습니다. 안녕하세요, 친구!",
    "ركض الثعلب الصغير فوق التل، ونظرت إليه الدجاجة.",
    "השועל הקטן רץ על הגבעה והתרנגולת הביטה בו.",
    "छोटी लोमड़ी पहाड़ी पर दौड़ी और मुर्गी ने उसे देखा।",
    "จิ้งจอกตัวเล็กวิ่งข้ามเนินเขา และแม่ไก่มองดูมัน",
    "Con cáo nhỏ chạy qua ngọn đồi, và con gà mái nhìn nó.",
    "Մի փոքրիկ աղվես վազում էր բլրի վրայով։",
    "პატარა მელია გორაზე გარბოდა.",
    "def add(a, b):\n    return a + b\n\n\nprint(add(1, 2))  # 3\n",
    "for (int i = 0; i < n; ++i) {\n\tsum += x[i] * y[i];\n}\n",
    '{"name": "fox", "legs": 4, "tags": ["red", "quick"]}',
    '<p class="story">The end.</p>\r\n<br/>\r\n',
]

# Each of these broke some tokenizer once, or would break a careless one.
HARD = [
    "",
    " ",
    "  ",
    "   ",
    "\n",
    "\n\n",
    "\t",
    "\r\n",
    " \n",
    "\n ",
    "a",
    " a",
    "a ",
    "  a",
    "a  b",
    "a   b  ",
    " leading",
    "trailing ",
    "   three leading",
    "line\nline\n",
    "line \n line",
    "tab\tand\ttab",
    "a\r\nb\rc",
    "word\n\n\n\nword",
    "   \n   \n",
    "end of text.\n",
    "spaces          in the middle",
    "\u00a0no-break\u00a0space\u00a0",
    "\u3000wide\u3000blank",
    "thin\u2009blank\u2003em",
    "zero\u200bwidth",
    "line\u2028separator\u2029",
    "next\u0085line",
    "mongolian\u180evowel",
    "\ufeffbyte order mark",
    "nul\x00byte",
    "bell\x07 and \x1b[31mred\x1b[0m",
    "\x7f\x80\x9f",
    "I'm you're he's we'll they've I'd can't",
    "I'M YOU'RE HE'S WE'LL THEY'VE I'D CAN'T",
    "'s 't 're",
    "it’s ‘quoted’",
    "'ſ ſtrange",
    "x's' 'y",
    "rock'n'roll o'clock",
    "0",
    "7",
    "42",
    "007",
    "123",
    "1234",
    "1234567890",
    "3.14159",
    "1,000,000",
    "1e-9",
    "12:34:56",
    "2026-11-20",
    "x1y22z333",
    "४५६",
    "٣٤٥",
    "１２３",
    "½ ¼ ²³ ⅓",
    "Ⅷ ⅻ ①②③",
    "五百",
    "$5 £6 €7 ¥8",
    "!",
    "!!!",
    "?!",
    "...",
    "…",
    "a.b.c",
    "(parens) [brackets] {braces}",
    "\"double\" 'single' `back`",
    "a-b_c/d\\e|f",
    "<|",
    "|>",
    "<| |>",
    "##!@%^&*()",
    "~~~~~~~~",
    "=====",
    "-----\n=====\n",
    "→←↑↓ ∀x∈ℝ",
    "a+b=c≠d",
    "«guillemets»",
    "¿¡",
    "。，！？",
    "😀",
    "😀😀😀",
    "a😀b",
    " 😀 ",
    "👍🏽",
    "👨‍👩‍👧‍👦",
    "🏳️‍🌈",
    "🇩🇪🇫🇷",
    "❤️",
    "1️⃣",
    "🤷🏾‍♀️ well",
    "☕",
    "♥︎",
    "é",
    "e\u0301",
    "cafe\u0301 café",
    "A\u030a Å Å",
    "q\u0307\u0323 q\u0323\u0307",
    "ô\u0323",
    "\u0301alone",
    "क्षि",
    "ལྷ་ས",
    "ก็้",
    "각",
    "각",
    "ᄒ",
    "한",
    "ﬁ ﬂ ﬀ",
    "ﷺ",
    "㎏ ㏒ ㍿",
    "Ｆｕｌｌ",
    "ｶﾅ",
    "ǅ ǆ",
    "İstanbul",
    "ıI",
    "ẞß",
    "ΑΣ Σας ΣΑΣ",
    "K (kelvin) Ω (ohm)",
    "ŉ",
    "ΐ",
    "𝔘𝔫𝔦𝔠𝔬𝔡𝔢 𝒽",
    "𠀀𠀁",
    "𓀀",
    "\U0001f9ff\u200d",
    "\ufffd",
    "\u200d",
    "a\u200db",
    "\u0600",
    "\ue000",
    "🙂text🙃",
    "ok\u0300\u0301\u0302\u0303\u0304\u0305",
    "Z͑ͫ̓ͪ̂ͫ̽͏̴̙̤̞͉͚̯̞̠͍A̴̵̜̰͔ͫ͗͢",
    "▁",
    "▁▁a",
    "a▁b",
    "Ġ",
    "Ċ",
    "Ä",
    "_a_b_",
    "__init__",
    "camelCaseWord",
    "SCREAMING_SNAKE",
    "https://example.org/a?b=c&d=%20#e",
    "name@example.org",
    "C:\\dir\\file.txt",
    "/usr/bin/env",
    "<0x0A>",
    "<0x41><0xE4>",
    "<0x",
    "<unk>",
    "<s>",
    "</s>",
    "<s>a</s>",
    "<pad>",
    "[INST] a [/INST]",
    "<bos>",
    "don<s>t",
    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
    "ababababababababab",
    "hahahahahaha",
    "nnnnnnnnnnn",
    "thethethethe",
    "a b c d e f g h",
    "A B C",
    "mIxEd CaSe WoRdS",
    "ALL CAPS TEXT",
    "Hello,World",
    "hello world",
    " hello world",
    "Hello World!",
]


def corpus(name: str, n_lines: int = 1500) -> list[str]:
    """Lines to train on: the sentences, and random words of them, with a few frequent ones."""
    r = random.Random(f"{SEED}/{name}/corpus")
    words = list(dict.fromkeys(word for sentence in SENTENCES for word in sentence.split()))
    the_first_of_them, the_rest = words[:60], words[60:]
    r.shuffle(the_rest)
    words = the_first_of_them + the_rest
    lines = [sentence for sentence in SENTENCES for _ in range(3)]
    for _ in range(n_lines):
        lines.append(
            " ".join(
                words[min(int(r.expovariate(1 / 60)), len(words) - 1)]
                for _ in range(r.randint(2, 9))
            )
        )
    return lines


def trials(name: str, markers: list[str], n: int = 30) -> list[str]:
    """The texts to tokenize: the hard ones, the sentences, the markers in all contexts, and
    mixtures."""
    r = random.Random(f"{SEED}/{name}/trials")
    texts = HARD + SENTENCES
    for marker in markers:
        texts = texts + [
            marker,
            f"a{marker}b",
            f" a {marker} b",
            f"  {marker}  {marker}",
            f"\n{marker}{marker}\n",
        ]
        texts = texts + [marker[:-1] + marker.upper(), f"x{marker.lower()}y"]
    pool = (
        [text for text in HARD if text]
        + SENTENCES
        + markers
        + [sentence.split()[0] for sentence in SENTENCES]
    )
    for _ in range(n):
        texts.append(
            "".join(
                r.choice(pool)[:40] + r.choice(["", "", " ", "  ", "\n"])
                for _ in range(r.randint(2, 5))
            )
        )
    return list(dict.fromkeys(texts))
