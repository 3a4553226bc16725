"""The words that a statement may be made of: node types of its tree, their parts, and functions.

Left out on purpose: what waits, locks, reads or writes files, tells about the server or its users
(SLEEP, BENCHMARK, GET_LOCK, LOAD_FILE, VERSION, USER, load_extension), and what makes long values
out of short ones (REPEAT, SPACE, zeroblob, printf); statement_cost bounds what concatenation makes.
"""

from typing import Final

_FUNCTIONS: Final = """
    count sum avg min max group_concat string_agg total std stddev stddev_pop stddev_samp
    variance var_pop
    var_samp bit_and bit_or bit_xor any_value json_arrayagg json_objectagg json_group_array
    json_group_object
    row_number rank dense_rank percent_rank cume_dist ntile lag lead first_value last_value
    nth_value
    if ifnull iif nullif coalesce greatest least isnull
    concat concat_ws substring substr mid substring_index left right length char_length
    character_length
    octet_length bit_length lpad rpad upper ucase lower lcase trim ltrim rtrim replace instr locate
    position reverse
    ascii ord char chr strcmp field elt find_in_set hex unicode soundex quote
    abs ceil ceiling floor round truncate sign sqrt pow power exp ln log log2 log10 mod pi
    degrees radians sin cos tan cot asin acos atan atan2
    rand random crc32 md5 sha1 sha sha2 conv bin oct format bit_count
    inet_aton inet_ntoa inet6_aton inet6_ntoa is_ipv4 is_ipv6
    now current_timestamp curdate current_date curtime current_time localtime localtimestamp
    utc_timestamp
    utc_date utc_time sysdate unix_timestamp from_unixtime date time timestamp datetime year
    quarter month
    week weekofyear yearweek day dayofmonth dayofweek dayofyear weekday dayname monthname hour
    minute second
    microsecond extract date_format time_format str_to_date date_add date_sub adddate subdate
    addtime
    subtime datediff timediff timestampdiff timestampadd last_day makedate maketime sec_to_time
    time_to_sec
    to_days from_days to_seconds period_add period_diff convert_tz
    strftime julianday unixepoch
    cast convert typeof
    json_extract json_unquote json_value json_length json_contains json_contains_path json_keys
    json_type
    json_valid json_search json_object json_array json_quote json_array_length json_depth json
    json_set json_insert json_replace json_remove json_merge_patch json_array_append json_overlaps
    json_exists json_query json_pretty json_detailed
    unhex nvl nvl2 median percentile_cont percentile_disc grouping
    match regexp_like regexp_replace regexp_substr regexp_instr
"""

# Words that stand before a bracket without calling anything; types are among them.
_KEYWORDS_BEFORE_BRACKET: Final = """
    select distinct all from join on using where and or xor not in exists any some as by having
    when then else
    case between like glob regexp rlike escape is union except intersect over filter within
    against interval
    div binary with limit offset window partition order group collate end
    char varchar nchar decimal dec numeric float double signed unsigned integer int varbinary
    real text date time
    datetime timestamp
"""

_NODES: Final = """
    Select Union Intersect Except Subquery With CTE From Table TableAlias Join Where Group
    Rollup Having Order
    Ordered Limit Fetch LimitOptions Offset Distinct Star Alias Aliases Column Identifier Literal Boolean Null
    Paren Tuple Var
    Window WindowSpec Filter HexString BitString
    And Or Xor Not EQ NEQ GT GTE LT LTE NullSafeEQ NullSafeNEQ Is In Between Like Glob Escape
    Exists Any All
    RegexpLike MatchAgainst Match Collate
    Add Sub Mul Div IntDiv Mod Neg DPipe BitwiseAnd BitwiseOr BitwiseXor BitwiseNot BitwiseLeftShift
    BitwiseRightShift
    Case If Coalesce Nullif Greatest Least Cast TryCast DataType DataTypeParam CharacterSet Interval
    IntervalSpan
    Count Sum Avg Min Max GroupConcat StddevPop StddevSamp Stddev Variance VariancePop
    BitwiseAndAgg BitwiseOrAgg
    BitwiseXorAgg AnyValue JSONObjectAgg JSONArrayAgg JSONGroupArray
    RowNumber Rank DenseRank PercentRank CumeDist Ntile Lag Lead FirstValue LastValue NthValue
    Concat ConcatWs Substring SubstringIndex Left Right Length ByteLength BitLength Upper Lower
    Trim Replace Pad
    StrPosition Reverse Ascii Chr Unicode Elt Hex LowerHex Soundex
    Abs Ceil Floor Round Trunc Sign Sqrt Pow Exp Ln Log Pi Degrees Radians Rand MD5 SHA SHA2
    NumberToStr
    BitwiseCount
    CurrentDate CurrentTime CurrentTimestamp Localtime Localtimestamp UtcTimestamp UtcDate UtcTime
    Date Time Timestamp Datetime TsOrDsToDate TsOrDsToTimestamp TsOrDsToTime TsOrDsToDatetime
    TsOrDsAdd
    TsOrDsDiff TimeToStr StrToDate StrToTime StrToUnix
    UnixToTime TimeToUnix DateAdd DateSub DateDiff DatetimeAdd DatetimeSub DatetimeDiff TimestampAdd
    TimestampSub TimestampDiff TimeAdd TimeSub TimeDiff LastDay ConvertTimezone
    Extract Year Quarter Month Week WeekOfYear Day DayOfMonth DayOfWeek DayOfYear DayOfWeekIso
    Dayname Monthname
    Hour Minute Second ToDays MakeTime TimeFromParts UnixSeconds UnixDate JulianDay
    Sin Cos Tan Cot Asin Acos Atan Atan2 Unhex Nvl2 Median PercentileCont PercentileDisc WithinGroup Grouping
    Typeof
    JSONExtract JSONExtractScalar JSONPath JSONPathKey JSONPathRoot JSONPathSubscript
    JSONPathWildcard
    JSONPathRecursive JSONKeyValue JSONObject JSONArray JSONArrayContains JSONValue JSONKeys
    JSONType JSONFormat
    JSONSet JSONRemove JSONArrayAppend
    ParseJSON JSONContains JSONLength RegexpReplace RegexpExtract RegexpSubstr RegexpInstr
    RegexpFullMatch
"""

FUNCTIONS: Final = frozenset(_FUNCTIONS.split())
KEYWORDS_BEFORE_BRACKET: Final = frozenset(_KEYWORDS_BEFORE_BRACKET.split())
NODES: Final = frozenset(_NODES.split())

_QUERY: Final = frozenset(("with_", "joins", "where", "group", "having", "windows", "order", "limit", "offset"))

# For these nodes a part that is not listed may change what the statement does (INTO, locks, hints).
ARGUMENTS: Final[dict[str, frozenset[str]]] = {
    "Select": _QUERY | {"expressions", "distinct", "from_"},
    "Union": _QUERY | {"this", "expression", "distinct"},
    "Intersect": _QUERY | {"this", "expression", "distinct"},
    "Except": _QUERY | {"this", "expression", "distinct"},
    "Subquery": _QUERY | {"this", "alias"},
    "Table": frozenset(("this", "alias", "joins")),
    "Join": frozenset(("this", "on", "side", "kind", "using", "method")),
    "With": frozenset(("expressions",)),
    "CTE": frozenset(("this", "alias")),
    "TableAlias": frozenset(("this", "columns")),
    # GROUP_CONCAT(… LIMIT n) has what it is limited in it.
    "Limit": frozenset(("this", "expression", "offset")),
    "Fetch": frozenset(("direction", "count", "limit_options")),
    # WITH TIES and PERCENT give another number of rows than the one that is written.
    "LimitOptions": frozenset(("rows",)),
    "Group": frozenset(("expressions", "rollup")),
}
