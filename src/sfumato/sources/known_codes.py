"""Codes by which common files call their columns: ACS and IPUMS, the CPS, NHANES. A code is a whole name, any case."""

from __future__ import annotations

import re

from sfumato.sources.known_names import MONEY, WEIGHT_NAME, Known
from sfumato.sources.roles import Role

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
    """What is known about a column called by a code, also where a recode of it has a suffix (`INDP_CAT`)."""
    for spelling in dict.fromkeys((name, SUFFIX.sub("", name))):
        for known in CODES:
            if known.pattern.fullmatch(spelling):
                return known
    return None


def is_allocation_flag(name: str, distinct: int) -> bool:
    """Whether a column says which values of another one were filled in (`FAGEP` of `AGEP`)."""
    return distinct <= 3 and ALLOCATION.fullmatch(name) is not None
