"""Words by what they tell about a change: people, possessions, places, and what is a kind of what."""

from functools import lru_cache

from ewe.text.english import FUNCTION_WORDS, MONTHS, NUMBER_WORDS, ORDINALS, WEEKDAYS, stem, words_of

PEOPLE = words_of(
    """sister brother mother father mum mom mummy dad daddy parents parent wife husband partner girlfriend boyfriend
    fiance fiancee son daughter child kid kids children baby niece nephew aunt auntie uncle cousin grandma grandpa gran
    granny grandad granddad grandmother grandfather grandson granddaughter twin friend friends mate boss manager
    colleague colleagues coworker neighbour neighbours neighbor neighbors roommate flatmate housemate landlord landlady
    teacher tutor coach trainer stepson stepdaughter stepmother stepfather godmother godfather family ex in-laws
    father-in-law mother-in-law brother-in-law sister-in-law team students pupils"""
)
RELATIVES = words_of("mum mom dad mother father gran grandma grandpa granny grandad granddad aunt uncle auntie")
SINGLE = words_of(
    """car bike bicycle scooter motorbike van laptop computer phone mobile tablet flat apartment house place home job
    boss manager dentist doctor gp physio physiotherapist therapist optician hairdresser barber accountant lawyer coach
    trainer teacher tutor landlord landlady flatmate roommate housemate boyfriend girlfriend partner husband wife gym
    school kindergarten nursery office desk bed sofa couch fridge tv television kitchen mattress guitar piano violin
    haircut hairstyle passport contract salary employer company commute bank insurance surname username password
    number email address nanny cleaner childminder supervisor professor psychologist vet watch camera editor browser
    publisher agent bandmate drummer singer bassist captain chairman chairwoman headteacher mayor routine schedule
    shift rota diet medication dose inhaler washing-machine dishwasher oven stove boiler router printer"""
)
"""What somebody has one of at a time, so that "my new ..." takes the place of the one before."""
_KINDS = {
    "dog": "puppy terrier greyhound beagle poodle spaniel labrador retriever dachshund collie husky pug bulldog mutt",
    "cat": "kitten tabby tomcat kitty siamese",
    "pet": "dog cat hamster rabbit parrot budgie tortoise gerbil ferret goldfish guinea",
    "alcohol": "wine beer gin whisky whiskey vodka rum cider champagne cocktail prosecco ale lager booze pint",
    "child": "son daughter baby toddler newborn twins boy girl",
    "smoke": "cigarette cigarettes cigar cigars vape tobacco",
    "meat": "steak chicken bacon burger sausage ham beef lamb pork turkey schnitzel kebab salami mince brisket ribs",
    "fish": "salmon tuna sushi cod herring trout",
    "gluten": "bread pasta wheat",
    "dairy": "milk cheese yoghurt yogurt butter lactose",
    "car": """volvo toyota honda ford fiat skoda audi bmw mercedes kia hyundai tesla renault peugeot citroen saab seat
    opel vauxhall mazda nissan subaru passat golf polo clio corsa civic corolla prius yaris focus fiesta""",
    "bike": "bicycle e-bike ebike",
    "phone": "iphone pixel galaxy samsung fairphone nokia huawei xiaomi oneplus motorola",
    "laptop": "macbook thinkpad dell chromebook surface",
    "os": "windows linux mac macos ubuntu fedora debian",
    "browser": "firefox chrome safari brave edge opera",
    "streaming": "netflix disney hulu",
    "music": "spotify tidal deezer",
    "chat": "slack teams discord whatsapp telegram signal",
    "editor": "vim emacs vscode neovim sublime pycharm",
    "bank": "ing revolut n26 barclays lloyds hsbc monzo santander triodos",
    "mail": "gmail outlook protonmail fastmail",
    "notes": "evernote notion obsidian onenote",
    "commerce": "tesco ocado sainsbury lidl aldi waitrose",
}
_WIDER: dict[str, set[str]] = {}
for _kind, _members in _KINDS.items():
    for _member in _members.split():
        _WIDER.setdefault(stem(_member), set()).add(stem(_kind))
_SAME = {
    "mum": "mother", "mom": "mother", "mummy": "mother", "dad": "father", "daddy": "father", "gran": "grandmother",
    "granny": "grandmother", "grandma": "grandmother", "grandpa": "grandfather", "grandad": "grandfather",
    "granddad": "grandfather", "bicycle": "bike", "cycle": "bike", "cycles": "bike", "cycling": "bike",
    "apartment": "flat", "kid": "child", "kids": "child", "mobile": "phone", "cell": "phone", "cellphone": "phone",
    "smartphone": "phone", "movie": "film", "couch": "sofa", "physiotherapist": "physio", "bicycles": "bike",
    "roommate": "flatmate", "housemate": "flatmate", "landlady": "landlord", "email": "mail", "telly": "television",
    "tv": "television", "euros": "euro", "kilos": "kg", "kilo": "kg", "veggie": "vegetarian", "gp": "doctor",
    "ciggies": "cigarette", "wifey": "wife", "hubby": "husband", "fiancee": "fiance", "favourite": "favorite",
    "stand-up": "standup", "veggies": "vegetable", "classes": "class", "enjoy": "like", "enjoys": "like",
    "love": "like", "loves": "like", "spare": "free",
    "employed": "work", "member": "belong", "visited": "been", "allergy": "allergic",
    "allergies": "allergic", "collection": "collect", "lessons": "lesson", "pills": "pill",
}  # fmt: skip
_LIGHT = words_of(
    """be have has had having own get got getting do does did done go goes going went gone make makes made take takes
    took taken keep keeps kept put let really just still already even quite very pretty much many lot
    lots bit kind sort thing things stuff way ways always usually often sometimes never ever now nowadays anymore any
    more longer instead again yet finally today yesterday tonight tomorrow week weeks month months year years day days
    time times last next this that these those since ago recently lately currently one ones ours mine yours hers theirs
    new old good nice great lovely bad big little small whole own okay ok well oh yes no not only also too both almost
    nearly about around roughly almost user name named call called is are was were am been being started
    began officially actually honestly literally sadly luckily turns turn third"""
)
FILLERS = (FUNCTION_WORDS - words_of("before after without")) | _LIGHT | MONTHS.keys() | WEEKDAYS | NUMBER_WORDS.keys()
FILLERS |= ORDINALS.keys() | {f"{day}s" for day in WEEKDAYS} | words_of("oclock pm am half past quarter")
SIDES = (
    words_of("morning mornings breakfast"),
    words_of("noon lunch lunchtime midday"),
    words_of("afternoon afternoons"),
    words_of("evening evenings dinner night nights bedtime"),
)
_QUALIFIERS: tuple[tuple[frozenset[str], ...], ...] = (
    SIDES,
    (words_of("work office business professional job"), words_of("private home personal family")),
    (words_of("summer"), words_of("winter"), words_of("spring"), words_of("autumn")),
    (words_of("weekend weekends"), words_of("weekday weekdays")),
    (words_of("left"), words_of("right")),
    (words_of("upper"), words_of("lower")),
    (words_of("first"), words_of("last"), words_of("middle"), words_of("second")),
    (words_of("older elder eldest"), words_of("younger youngest")),
    (words_of("landline"), words_of("mobile cell")),
    (words_of("favourite favorite"), words_of("worst least")),
    (words_of("best"), words_of("worst")),
)
UNITS = {
    "kg": "kg", "kilo": "kg", "kilos": "kg", "kilograms": "kg", "pounds": "pound", "lbs": "pound", "stone": "stone",
    "euros": "money", "euro": "money", "dollars": "money", "quid": "money", "bucks": "money", "kroner": "money",
    "mg": "dose", "ml": "dose", "milligrams": "dose", "drops": "dose", "km": "km", "kilometres": "km", "miles": "mile",
    "k": "km", "hours": "hour", "hour": "hour", "hrs": "hour", "minutes": "minute", "minute": "minute",
    "mins": "minute", "m": "metre", "metres": "metre", "cm": "cm", "percent": "percent", "sugars": "sugar",
    "times": "times", "days": "day", "people": "people", "rooms": "room", "bedrooms": "bedroom", "kids": "child",
    "children": "child", "cats": "cat", "dogs": "dog", "chickens": "hen", "hens": "hen", "employees": "people",
    "members": "people", "degrees": "degree", "pages": "page", "litres": "litre",
}  # fmt: skip


@lru_cache(maxsize=1 << 14)
def normal(word: str) -> str:
    """The stem of a folded word, one for words of the same meaning."""
    return stem(_SAME.get(word, word))


def kinds_of(stems: frozenset[str]) -> frozenset[str]:
    """Stems with what they are kinds of: a puppy is a dog, and a dog a pet."""
    found, new = set(stems), set(stems)
    while new:
        new = {wider for one in new for wider in _WIDER.get(one, ())} - found
        found |= new
    return frozenset(found)


def kind_of(word: str) -> str:
    """What a make or product is one of, if somebody has one of a kind at a time: "pixel" is a phone; or empty."""
    found = _WIDER.get(normal(word), set()) & _ONE_OF_A_KIND
    return next(iter(found), "")


_ONE_OF_A_KIND = frozenset(
    map(
        stem,
        ["car", "bike", "phone", "laptop", "os", "browser", "music", "editor", "bank", "mail", "notes", "commerce"],
    )
) | {"chat"}


def sides_of(words: frozenset[str]) -> tuple[frozenset[int], ...]:
    """Per pair of opposites (morning and evening, work and private, left and right ...) those that are named."""
    return tuple(
        frozenset(place for place, side in enumerate(family) if not side.isdisjoint(words)) for family in _QUALIFIERS
    )


def differ(one: tuple[frozenset[int], ...], other: tuple[frozenset[int], ...], changes: bool = False) -> bool:
    """Whether both name a time of day, a purpose or a side, and not the same one: "work phone", "private phone".

    changes: whether the other says that something is otherwise now; then its time of day may be what changed.
    """
    return any(
        first and second and first.isdisjoint(second) for first, second in list(zip(one, other, strict=True))[changes:]
    )
