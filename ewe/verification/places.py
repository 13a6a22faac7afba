"""Names of states and continents, so that "born in Paris" and "born in France" are not taken for a contradiction."""

from __future__ import annotations

_CONTINENTS = (
    "africa|antarctica|asia|europe|north america|south america|oceania|america|scandinavia|balkans|middle east"
)
_COUNTRIES = """\
afghanistan|albania|algeria|andorra|angola|argentina|armenia|australia|austria|azerbaijan|bahamas|
bahrain|bangladesh|barbados|belarus|belgium|belize|benin|bhutan|bolivia|bosnia|botswana|brazil|
brunei|bulgaria|burkina faso|burma|burundi|cambodia|cameroon|canada|cape verde|
central african republic|chad|chile|china|colombia|comoros|congo|costa rica|croatia|cuba|cyprus|
czech republic|czechia|czechoslovakia|denmark|djibouti|dominica|dominican republic|ecuador|egypt|
el salvador|england|eritrea|estonia|eswatini|ethiopia|fiji|finland|france|gabon|gambia|georgia|
germany|ghana|great britain|greece|grenada|guatemala|guinea|guyana|haiti|honduras|hungary|iceland|
india|indonesia|iran|iraq|ireland|israel|italy|ivory coast|jamaica|japan|jordan|kazakhstan|kenya|
kiribati|korea|kosovo|kuwait|kyrgyzstan|laos|latvia|lebanon|lesotho|liberia|libya|liechtenstein|
lithuania|luxembourg|madagascar|malawi|malaysia|maldives|mali|malta|mauritania|mauritius|mexico|
moldova|monaco|mongolia|montenegro|morocco|mozambique|myanmar|namibia|nauru|nepal|netherlands|
holland|new zealand|nicaragua|niger|nigeria|north korea|north macedonia|northern ireland|norway|oman|
ottoman empire|pakistan|palau|palestine|panama|papua new guinea|paraguay|persia|peru|philippines|
poland|portugal|prussia|qatar|romania|russia|russian empire|rwanda|samoa|san marino|saudi arabia|
scotland|senegal|serbia|seychelles|sierra leone|singapore|slovakia|slovenia|somalia|south africa|
south korea|soviet union|spain|sri lanka|sudan|suriname|sweden|switzerland|syria|taiwan|tajikistan|
tanzania|thailand|togo|tonga|trinidad|tunisia|turkey|turkmenistan|uganda|ukraine|
united arab emirates|united kingdom|uk|united states|united states america|us|usa|uruguay|ussr|
uzbekistan|vanuatu|venezuela|vietnam|wales|yemen|yugoslavia|zambia|zimbabwe"""
_PARTS = """\
alabama|alaska|arizona|arkansas|california|colorado|connecticut|delaware|florida|hawaii|idaho|
illinois|indiana|iowa|kansas|kentucky|louisiana|maine|maryland|massachusetts|michigan|minnesota|
mississippi|missouri|montana|nebraska|nevada|new hampshire|new jersey|new mexico|new york|
north carolina|north dakota|ohio|oklahoma|oregon|pennsylvania|rhode island|south carolina|
south dakota|tennessee|texas|utah|vermont|virginia|washington|west virginia|wisconsin|wyoming|
ontario|quebec|british columbia|alberta|bavaria|saxony|silesia|catalonia|andalusia|tuscany|lombardy|
sicily|provence|brittany|normandy|cornwall|kent|essex|sussex|yorkshire|devon|bengal|punjab|kerala|
new south wales|queensland|tasmania"""

_LEVELS: dict[tuple[str, ...], int] = {
    tuple(name.strip().split()): level
    for level, names in enumerate((_CONTINENTS, _COUNTRIES, _PARTS), 1)
    for name in names.split("|")
}


def level(words: tuple[str, ...]) -> int:
    """1 for a continent, 2 for a country, 3 for a part of one, 0 for any other name (folded words)."""
    return _LEVELS.get(words, 0)
