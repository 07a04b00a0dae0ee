"""Roles that follow from words and codes in the names of columns, with their reasons.

The first pattern that fits is taken. A visible attribute, or one that acquaintances and registers know, is a
quasi-identifier, even where the law calls it sensitive (origin, a visible disability). The reason is that people can be
recognised by a column that is released unchanged. Attributes that are not visible and may do harm (health, money,
beliefs, crimes) are sensitive.

Codes are the names of columns in common files: ACS and IPUMS, the CPS, NHANES. Upper and lower case are the same.
"""

from __future__ import annotations

import re
from typing import Literal, NamedTuple

from sfumato.data.settings import Role

QUASI, SENSITIVE = Role.QUASI_IDENTIFIER, Role.SENSITIVE
MONEY = "money: confidential"


class Known(NamedTuple):
    """A pattern for names, the role that follows (None: it could be more than one), and why."""

    role: Role | None
    pattern: re.Pattern[str]
    reason: str


def _known(role: Role | None, reason: str, pattern: str) -> Known:
    return Known(role, re.compile(pattern), reason)


WEIGHT_NAME = "its name says survey weight"
IDENTIFIER_NAME = "its name says identifier"

NAMES: tuple[Known, ...] = (
    _known(
        Role.WEIGHT,
        WEIGHT_NAME,
        r"\b(sampling|survey|sample|final|person|household|instance|design|expansion|grossing|population|hh)s? ?"
        r"(weights?|wgts?|wts?|factors?)\b|\ba?fnlwgt\b",
    ),
    _known(
        None,
        "a body weight (quasi_identifier) or a survey weight (weight)?",
        r"^(weights?|wgt|wt|w)$",
    ),
    _known(
        Role.IDENTIFIER,
        IDENTIFIER_NAME,
        r"\b(ssn|nino|nhs ?(number|no|nr)|passport|e ?mail|phone|mobile number|telephone number|fax|iban|imei|uuid|"
        r"guid|"
        r"mrn|seqn|serialno|cbserial|surname|forename|maiden name|(first|last|full|given|middle|family|user) ?name|"
        r"login|ip address|mac address|street address|home address|address|licen[cs]e (plate|number|no)|"
        r"number plate|card number|social security (number|no)|"
        r"(patient|employee|emp|staff|person|client|customer|member|student|pupil|citizen|tax|account|policy|"
        r"record|case|"
        r"personal|national|medical record|insurance|registration) ?(number|no|nr|num|id|ids|identifier|"
        r"identification))\b"
        r"|\b(person|patient|client|customer|cust|user|member|employee|emp|staff|student|pupil|household|hh|resp|"
        r"respondent|subject|participant|pers|utility|account|acct|record)id\b",
    ),
    _known(
        Role.IDENTIFIER,
        "its name says identifier, and few records share a value",
        r"\b(id|ids|hid|pid|uid|identifier|name|names|serial|account|licen[cs]e|utilname|key)\b",
    ),
    _known(
        Role.DROP,
        "free text can name people",
        r"\b(comments?|remarks?|notes|free ?text|narrative|description|message|memo)\b",
    ),
    _known(
        QUASI,
        "neighbours can see it, though it is also sensitive",
        r"\bdisab\w*|\bhandicap\w*|\bwheelchair\b|\bdifficulty (hearing|seeing|walking|dressing|doing errands)"
        r"|\b(deaf|blind)\w*|\b(hearing|vision)\b",
    ),
    _known(
        SENSITIVE,
        "health: confidential",
        r"\b(health|healthy|disease|diagnos\w*|illness|ill|sick\w*|symptom\w*|icd\w*|drg|morbid\w*|hiv|aids|cancer|"
        r"tumou?r|malignan\w*|diabet\w*|prediabetes|asthma|arthritis|stroke|heart|cardi\w*|blood|pulse|systolic|"
        r"diastolic|"
        r"cholesterol|hdlcholesterol|glucose|insulin|glyco\w*|hba1c|a1c|obes\w*|pregnan\w*|fertil\w*|abortion|"
        r"mental|depress\w*|anxi\w*|worried|psych\w*|suicid\w*|stress|therap\w*|treatments?|medicat\w*|medicines?|"
        r"prescri\w*|surger\w*|operation|procedures?|test results?|lab results?|allerg\w*|vaccin\w*|genetic\w*|"
        r"genotype|dna|smok\w*|tobacco|cigar\w*|nociga|alcohol\w*|alcabuse|alcsol|drugs?|marijuana|hashish\w*|"
        r"cocaine\w*|"
        r"heroin\w*|methamphetamine\w*|rehab\w*|hepatitis|sleep\w*|snore|appetite|hopeless|dead|memory|confusion\w*|"
        r"concentrat\w*|cause of death|diet|breast\w*|impair\w*|limitations?)\b",
    ),
    _known(
        SENSITIVE,
        "benefits and insurance indicate poverty or illness",
        r"\b(insurance|insured|medicaid|medicare|poverty|welfare|benefits?|food stamps?|allowance|subsid\w*|"
        r"unemploy\w* "
        r"(pay|benefit)\w*)\b",
    ),
    _known(
        SENSITIVE,
        "beliefs are protected by law, and cannot be seen",
        r"\b(religio\w*|faith|church\w*|belief\w*|politic\w*|party|vote\w*|voting|union|ideolog\w*|"
        r"sexual\w*|orientation|gender identity)\b",
    ),
    _known(
        SENSITIVE,
        "confidential",
        r"\b(crime\w*|criminal\w*|convict\w*|arrest\w*|offen[cs]es?|prison\w*|jail|victim\w*|violen\w*|abuse\w*|"
        r"performance|rating|appraisal|disciplin\w*|absences?|termination|resign\w*|gpa|exam\w*|score|marks)\b",
    ),
    _known(
        QUASI,
        "it can be seen from the street",
        r"\b(own(er)?( or)? ?rent\w*|tenure|housing|house|dwelling|building|rooms?|bedrooms?|roof|walls?|toilet|"
        r"electcon|"
        r"electric\w*|water|heating|vehicles?|cars?|garden|property type)\b",
    ),
    _known(
        SENSITIVE,
        MONEY,
        r"\b(income\w*|salar\w*|wages?|earn\w*|pay|paid|payments?|bonus\w*|compensation|remuneration|tax\w*|fedtax|"
        r"statetax|taxinc|debts?|loans?|credit\w*|savings?|assets|wealth|balance|bal|bills?|amounts?|amt\w*|"
        r"mortgage|rent|"
        r"expend\w*|spend\w*|money|pension\w*|capital|dividends?|default|bankrupt\w*|price|costs?|turnover|revenue|"
        r"sales|"
        r"profit|funds|treasury|depreciation|agi|fica|emcontrb|ptotval|pothval|intval|pearnval|wsalval|ernval|"
        r"(res|com|ind|othr?|tot)(revenue|sales)|financial)\b",
    ),
    _known(
        QUASI,
        "age and birth are in registers and known to many people",
        r"\b(age|ages|aged|agegr|age ?group|ageyoung|born|birth\w*|dob|yob|year of birth|kids|generation)\b",
    ),
    _known(QUASI, "everyone who meets a person knows it", r"\b(sex|gender)\b"),
    _known(
        QUASI,
        "it can be seen or heard, or acquaintances know it, though it is also sensitive",
        r"\b(race\w*|racial|ethnic\w*|etni|hispanic|ancestr\w*|origin|tribe|caste|skin|nativity|native|nation\w*|"
        r"citizen\w*|"
        r"immigra\w*|emigra\w*|foreign\w*|migra\w*|languages?|englang|english|mother tongue)\b",
    ),
    _known(
        QUASI,
        "neighbours and registers know it",
        r"\b(marital|marstat|civil|hhcivil|marri\w*|divorc\w*|widow\w*|spouse|partner|wedding|relat\w*|households?|"
        r"family\w*|"
        r"famil(y|ies)|children|child|siblings?|parents?|mother|father|dependents?|persons?|people|composition|"
        r"population base|residents?|headship)\b",
    ),
    _known(
        QUASI,
        "outsiders know where a person lives or works",
        r"\b(zip\w*|postal|postcode|post ?code|plz|city|town|village|municipal\w*|commune|communality|district|"
        r"county|"
        r"counties|region\w*|states?|province|country|countries|canton|parish|borough|tract|neighbou?rhood|area|"
        r"density|"
        r"urban\w*|rural\w*|urbrur|placesize|place|residence|lat|lon|lng|latitude|longitude|gps|coordinates?|"
        r"geo\w*|nuts\d?|"
        r"lsoa|msoa|fips|puma|msa|metro\w*|location|site|division|reg|sunbelt)\b",
    ),
    _known(
        QUASI,
        "known from colleagues, schools and public profiles",
        r"\b(education\w*|educ\d?|edu|eduspec|school\w*|degree|diploma|qualification\w*|grade|student\w*|pupil|"
        r"enrol\w*|"
        r"universit\w*|college|occupation\w*|occucode|prioccu|occ|job|jobs|profession\w*|socprof|workclass|worker|"
        r"industry|"
        r"sector|employ\w*|unemploy\w*|unempdur|company|firm|department|dept|team|managers?|supervisor|title|"
        r"position|rank|"
        r"shift|hire\w*|joined|start date|contract|seniority|years of service|labou?r|work\w*|hours|ftptime|"
        r"full ?time|part ?time|weeks|commut\w*|economic activity|social (grade|class)|military|veterans?|armed|"
        r"army|served|"
        r"business|self employed)\b",
    ),
    _known(
        QUASI,
        "families, staff and the press may know it",
        r"\b(admission\w*|admitted|discharge\w*|visit\w*|encounter|hospital|clinic|ward|doctor|physician|surgeon|"
        r"nurse|"
        r"length of stay|los|death|died|deceased|accident)\b",
    ),
    _known(
        QUASI,
        "it can be seen",
        r"\b(height\w*|stature|(body )?weight ?kg|bmi|body mass index\w*|waist|eye colou?r|hair|sport)\b",
    ),
    _known(QUASI, "dates and times are known to others too", r"\b(date\w*|day|month|year|time|timestamp|when)\b"),
)


def spelled(name: str) -> str:
    """Return a column name as lower-case words.

    >>> spelled("EverToldYouHadAStroke"), spelled("marital-status"), spelled("ICD10Code")
    ('ever told you had a stroke', 'marital status', 'icd10 code')
    """
    apart = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", " ", name)
    return re.sub(r"[^0-9a-zà-ÿ]+", " ", apart.lower()).strip()


_PEOPLE = (
    "patient|person|persons|personal|individual|respondent|resp|subject|participant|proband|client|customer|cust|"
    "member|employee|emp|staff|student|pupil|citizen|resident|insured|insurant|beneficiary|claimant|taxpayer|user|"
    "account|case|record|utility|medical record|national|nhs|social security|passport|tax|policy|insurance"
)
_NUMBER = "number|no|nr|num|id|ids|identifier|identification|key|code|serial"
PERSON_NUMBER = re.compile(
    rf"\b({_PEOPLE}) ?({_NUMBER})\b|^(ssn|nino|mrn|seqn|uuid|guid|pid|pidp|uid|id|rinpersoon|imei|iban|login|email|"
    r"e mail)$"
    r"|\b(person\w*|patient\w*|kunden|versicherten|schüler|schueler|mitglieds?|probanden) ?(nummer|nr|kennung)\b"
)
HOUSEHOLD_NUMBER = re.compile(
    rf"\b(household|households|hh|family|fam|dwelling|home|housing unit|haushalts?) ?({_NUMBER}|nummer)\b"
    r"|\b(hid|hhid|hhx|hidp|serialno|cbserial|haushaltsnummer|hhnr|hldno)\b|^serial$"
)
WITHIN = re.compile(r"^(pernum|sporder|person ?(number|no|nr|num|id)|line ?(number|no)|pid)$")
NAME_PART = re.compile(r"\b((first|last|given|middle|family|maiden|second) ?name|surname|forename|vorname|nachname)\b")


def number_named(name: str) -> Literal["unit", "household"] | None:
    """Return what a column numbers by its name: persons, households, or neither.

    >>> number_named("PatientID"), number_named("ori_hid"), number_named("SERIALNO"), number_named("region code")
    ('unit', 'household', 'household', None)
    """
    words = spelled(name)
    if HOUSEHOLD_NUMBER.search(words):
        return "household"
    return "unit" if PERSON_NUMBER.search(words) else None


def counts_within(words: str) -> bool:
    """Return whether a name may be that of the number of a person in its household.

    >>> counts_within("person number"), counts_within("patient id")
    (True, False)
    """
    return WITHIN.search(words) is not None


def is_name_part(words: str) -> bool:
    """Return whether a column holds a part of a name, which many persons share.

    >>> is_name_part("last name"), is_name_part("name")
    (True, False)
    """
    return NAME_PART.search(words) is not None


SUFFIX = re.compile(r"_(cat|decile|quintile|group|grp|code|cd|recode|rc|bin|band|std)$", re.IGNORECASE)


def _codes(role: Role, reason: str, codes: str) -> Known:
    return Known(role, re.compile(rf"(?:{'|'.join(codes.split())})", re.IGNORECASE), reason)


CODES: tuple[Known, ...] = (
    _codes(Role.WEIGHT, WEIGHT_NAME, r"pwgtp wgtp perwt hhwt slwt asecwt wtfinl wtsupp a?fnlwgt wt(int|mec)2yr"),
    _codes(
        Role.DROP,
        "a replicate weight: it is for variances, and together such weights identify records",
        r"p?wgtp\d+ repwtp?\d* p?wrepw?t?\d+",
    ),
    _codes(Role.IDENTIFIER, "it identifies the household or the person", r"serialno cbserial serial seqn"),
    _codes(
        Role.DROP,
        "a number or a factor of the survey, not about the person",
        r"rt sporder pernum cbpernum adjinc adjhsg sample sddsrvyr ridstatr",
    ),
    _codes(
        Role.DROP,
        "a design variable: it shows the area of the sample",
        r"sdmvpsu sdmvstra cluster strata psu stratum",
    ),
    _codes(
        Role.QUASI_IDENTIFIER, "age (ACS, IPUMS, NHANES)", r"agep ridage(yr|mn|ex) ridexag[my] birthyr birthqtr qtrbir"
    ),
    _codes(Role.QUASI_IDENTIFIER, "sex (NHANES)", r"riagendr"),
    _codes(
        Role.QUASI_IDENTIFIER,
        "race, origin, language or citizenship: known to acquaintances, though also sensitive",
        r"rac\d?p? rac\dp racaian racasn racblk racnh racnhpi racnum racpi racsor racwht raced? hisp hispan(d)? "
        r"ridreth\d "
        r"anc(1p|2p)? ancestr\d?d? cit citwp citizen nativity waob pobp bpld? yoep decade yrimmig yrsusa\d lanx "
        r"lanp eng "
        r"language(d)? speakeng dmdborn\d dmdcitzn dmdyrsu[sz] sialang",
    ),
    _codes(
        Role.QUASI_IDENTIFIER,
        "family and household: neighbours and registers know it",
        r"mar marst msp marh[dmtwy]p? marhyp relp relship relshipp relate(d)? np noc nop npf nrc nchild nchlt5 "
        r"famsize famunit "
        r"nfams gcl gcm gcr fer paoc oc rc sfn sfr esp partner hht\d? hupac hupaoc hugcl r18 r60 r65 gq gqtype "
        r"dmdmartl dmdhh\w* dmdfmsiz dmdhr\w* kindpers numyoung numold",
    ),
    _codes(
        Role.QUASI_IDENTIFIER,
        "a place: outsiders know where a person lives or works",
        r"st puma\d* division region migp? migpuma\d* migsp migrate\dd? powpuma\d* powsp statefip stateicp countyfip "
        r"countyicp cntyfips met2013 metarea metro cbsa\w* city pwstate2 pwpuma00 pwmet13 placefp density",
    ),
    _codes(
        Role.QUASI_IDENTIFIER,
        "school and work: known from colleagues and public profiles",
        r"sch schg schl school educd? gradeatt edu fod1p fod2p sciengp sciengrlp cow classwkrd? esr empstatd? "
        r"labforce occp? "
        r"occ\d{4} occsoc socp indp? ind\d{4} indnaics naicsp wkhp wkhrs wkl wkw wkwn wrk wkswork\d? uhrs uhrswork "
        r"nwab nwav "
        r"nwla nwlk nwre dmdeduc\d jw(mnp|rip|tr|trns|ap|dp) drivesp tran tranwork trantime ttime depart departs "
        r"jobfind "
        r"addjob regjobc poslabm poslably compcode",
    ),
    _codes(
        Role.QUASI_IDENTIFIER,
        "service in the forces shows in records and on uniforms",
        r"mil vps mlp[a-k]{1,2} vetstatd? military dmqmiliz dmqadfc",
    ),
    _codes(
        Role.QUASI_IDENTIFIER,
        "a disability that neighbours can see, though it is also sensitive",
        r"dis dear deye dphy dout ddrs diff(hear|eye|phys|mob|care) vetdisab",
    ),
    _codes(Role.QUASI_IDENTIFIER, "it can be seen (NHANES)", r"bmx\w+ bmi(wt|ht)"),
    _codes(
        Role.QUASI_IDENTIFIER,
        "the home: it can be seen from the street",
        r"ten bld bdsp rmsp ybl veh own_rent housing_type ownershp(d)? builtyr2? rooms bedrooms unitsstr",
    ),
    _codes(
        Role.SENSITIVE,
        "health: confidential",
        r"drem diffrem drat dratx ridexprg lb[xd]\w+ bpx\w+ mcq\w+ diq\w+ dpq\w+ duq\w+ alq\w+ smq\w+ hs[dq]\d+",
    ),
    _codes(
        Role.SENSITIVE,
        "benefits and insurance indicate poverty or illness",
        r"hins\d hicov privcov pubcov hcov\w+ hiq\w+ fs pap ssip ssp povpip poverty indfmpir recben recunben "
        r"recodben recsosec",
    ),
    _codes(
        Role.SENSITIVE,
        MONEY,
        r"pincp wagp pernp semp intp oip retp hincp fincp valp rntp grntp mrgp smocp inctot ftotinc hhincome "
        r"incwage inc\w+ "
        r"indhhin\d indfmin\d valueh rentgrs",
    ),
)

ALLOCATION = re.compile(r"F[A-Z]{2,8}\d?[PC]")


def code_of(name: str) -> Known | None:
    """Return the known role of a column with a code as its name, also with the suffix of a recode (`INDP_CAT`)."""
    for spelling in dict.fromkeys((name, SUFFIX.sub("", name))):
        for known in CODES:
            if known.pattern.fullmatch(spelling):
                return known
    return None


def is_allocation_flag(name: str, distinct: int) -> bool:
    """Return whether a column says which values of another one were filled in (`FAGEP` of `AGEP`)."""
    return distinct <= 3 and ALLOCATION.fullmatch(name) is not None
