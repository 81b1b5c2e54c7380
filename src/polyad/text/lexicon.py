"""English word lists of the rules for mentions, and the capital letters of all alphabets."""

# ruff: noqa: SIM905  a word list reads best as words

from __future__ import annotations

from importlib import resources

COMMON_WORDS = frozenset(
    resources.files("polyad.text").joinpath("common_words.txt").read_text(encoding="utf-8").split()
)
"""Words of running text that are seldom part of a name, so that a capital at the beginning of a sentence means nothing.

They are in lower case in at least four passages of three public encyclopaedic corpora, and capitalised within a
sentence at most a quarter of the time. Some words of medicine, law, commerce and everyday speech were added by hand."""

FUNCTION_WORDS = frozenset(
    """
    a about above according across after again against all almost along already also although always amid among amongst
    an and another any anyone anything apart are around as aside at away back because been before behind being below
    beneath beside besides between beyond both but by can could despite did do does done down due during each either
    else even ever every everyone few finally following for former formerly from further had has have having he hence
    her here hers herself him himself his how however i if in including indeed instead into is it its itself just last
    later less like many may me meanwhile might more moreover most much must my myself near nearly neither never
    nevertheless next no nobody none nor not nothing now of off often on once one only onto or originally other others
    otherwise our out outside over own part per perhaps prior rather same second several shall she should similarly
    since so some someone something sometimes soon starring still such than that the their them themselves then there
    thereafter therefore these they this those though three through throughout thus to today together too toward
    towards two under unless unlike until up upon us various versus very via vs was we well were what whatever when
    where whereas wherever whether which while who whoever whom whose why will with within without would yes yet you
    your
    """.split()
)
"""Words that do not begin a name: pronouns, articles, prepositions, conjunctions and question words."""


def _list_capitals() -> str:
    """Return all capital letters up to U+FFFF as ranges such as ``A-Z``, for a character class of a regex."""
    with_capitals = (*range(0x2E80), *range(0xA640, 0xAC00), *range(0xFE70, 0x10000))  # not Chinese, Korean, ...
    codes = [code for code in with_capitals if chr(code).istitle() or chr(code).isupper()]
    ranges: list[list[int]] = []
    for code in codes:
        if ranges and ranges[-1][1] == code - 1:
            ranges[-1][1] = code
        else:
            ranges.append([code, code])
    return "".join(chr(first) if first == last else f"{chr(first)}-{chr(last)}" for first, last in ranges)


CAPITAL = f"[{_list_capitals()}]"
"""Pattern of a capital letter of any alphabet."""

ABBREVIATIONS = (
    "Mr|Mrs|Ms|Dr|Ste?|Sts|Sr|Jr|Gen|Lt|Col|Sgt|Capt|Cmdr|Maj|Rev|Hon|Prof|Gov|Sen|Rep|Mt|Ft|Vol|Bros|Inc|Co|Corp|Ltd|Fr"
    "|Msgr|Adm|Brig|Pres|No"
)
"""Pattern of words that end in a full stop within a name."""

PARTICLES = (
    "de|de'|del|della|della|dello|dell'|degli|dei|di|da|das|do|dos|du|des|van|von|der|den|het|ter|ten|te|zu|zum|zur|la|le|les|las|los|el"
    "|al|bin|ibn|ben|bint|y|e|et|und|av|af|na|ve|i|o|im|am|mac|ap|ferch|ua|no|ka|ki|ke|ko|se|aur"
)
"""Pattern of small words inside names of other languages than English."""

TITLES_AFTER_COMMA = (
    "Duke|Duchess|Prince|Princess|Count|Countess|Earl|Baron|Baroness|Baronet|Lord|Lady|Viscount|Viscountess|Marquess"
    "|Marquis|Margrave|Margravine|Landgrave|Landgravine|Elector|Archduke|Archduchess|King|Queen|Emperor|Empress|Grand"
    "|Dauphin|Holy|Bishop|Infante|Infanta|Jr|Sr|Inc|Ltd|PLC"
)
"""Pattern of words that continue a name after a comma: "Thomas Gascoigne, 1st Baronet"."""

FORMS_OF_ADDRESS = frozenset(
    """
    actor actress adm admiral ambassador archbishop archduchess archduke author baron baroness bishop brig brother capt
    captain cardinal chairman chancellor chief cmdr coach col colonel commander commissioner congressman count countess
    dame detective director doctor dr duchess duke earl emperor empress father former gen general gov governor hon
    inspector judge justice king lady lieutenant lord lt maharaja maj major mayor minister mother mr mrs ms officer pope
    premier pres president prime prince princess producer prof professor queen raja rear rep representative rev reverend
    saint secretary sen senator sergeant sgt shah singer sir sister sultan tsar czar u.k u.s us vice viceroy viscount
    writer
    """.split()
)
"""Words before a person's name that are not part of the name."""

GENERIC_WORDS = frozenset(
    """
    ad airport am army association award awards bc bce board ce church city college commission committee congressional
    constitution council county court department district fm government institute island lake legislature library llc
    ltd minister ministry museum navy no pm presidency representatives republic river road school section series state
    states terror tv university vol
    """.split()
)
"""Words with a capital that, by themselves, name nothing in particular."""

NOUNS_AFTER_NAME = (
    "disease|syndrome|dynasty|languages?|people|family|code|effect|theorem|equation|law|test|virus|scandal|crisis|affair"
    "|period|style|school|movement|party|culture|tribe|railway|station"
)
"""Pattern of lower-case nouns that form one name with the name before them: "Qing dynasty"."""

WORKS_BEFORE_NAME = (
    "films?|movies?|novels?|books?|plays?|songs?|albums?|singles?|series|documentary|opera|musical|show|game"
)
"""Pattern of nouns after which a run of capitals is a title, including function words."""

BREAKING_WORDS = FUNCTION_WORDS | frozenset(
    """
    able acts add adds affects allow allows appear appears applies arises available become becomes becoming begin begins
    being best better big billion bring brings came can cause causes certain change changes come comes commonly consider
    contain contains continue current day days decrease decreases depend depends describe describes different difficult
    discovers dozen effective eight eleven entitles equal especially example examples far fewer five follow follows form
    forms found four full gave general get gets give given gives giving go goes gone good got grants great greater grew
    grow grows half help helps high higher highest hold holds hundred important improves include includes increase
    increases indicate indicates inhibits involve involves keep keeps kind kinds knew know known large larger largest
    lead leads led left let likely little live lives long longer look looks low lower lowers lowest made main make makes
    making male mean means met million multiple need needs new nine number numbers occur occurs old open own particular
    people play plays possible present prevent prevents produce produces provide provides put raises ran range receive
    receives recent reduce reduces remain remains require requires result results run runs said sale saw say says see
    seems seen seven show shown shows similar simple single six slow slows small smaller sold sometimes somewhat special
    specific start starts still strong suggest suggests take taken takes taking tell ten tend tends thing things think
    thought thousand time times told took treats try turn twelve type types use used uses using usual varies want way
    ways well went whole whom wide work works worse write written year years young zero
    """.split()
)
"""Words outside of terms: function words, everyday verbs, and adjectives and nouns with little meaning."""

NOUNS_BEFORE_OF = frozenset(
    """
    abuse breach burden cancer cause certificate code court degree duty failure freedom function infection inflammation
    law loss mechanism obstruction point power presumption principle quality rate right rule shortness speed standard
    statute theory transfer unit writ
    """.split()
)
"""Nouns that form one term with the words after "of": "statute of limitations"."""
