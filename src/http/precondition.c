/* SPDX-License-Identifier: Apache-2.0 */
#include "http/precondition.h"

#include "http/date.h"
#include "http/etag.h"

/* Validators that match nothing, for a missing representation. */
static const struct mk_validators none = {.etag = {NULL, 0}, .modified = MK_MODIFIED_NONE};

/* Does the combined list of all headers with this id contain the representation's tag? `*` matches any
 * existing representation. */
static bool list_has_etag(const struct mk_headers *fields, enum mk_header_id id,
                          const struct mk_validators *v, bool weak)
{
    mk_str value;
    for (unsigned at = 0; mk_headers_next(fields, id, &at, &value);) {
        if (mk_str_eq(value, MK_STR("*")))
            return v != &none;
        if (mk_etag_in_list(value, v->etag, weak))
            return true;
    }
    return false;
}

/* Parses the date in a header. False: the header is missing, or must be ignored because it is repeated or not
 * a date. */
static bool parse_date_header(const struct mk_headers *fields, enum mk_header_id id, int64_t now,
                              int64_t *time)
{
    mk_str value, second;
    unsigned at = 0;
    if (!mk_headers_next(fields, id, &at, &value) || mk_headers_next(fields, id, &at, &second))
        return false;
    return mk_date_parse(value, now, time);
}

/* Steps 1 and 2 of RFC 9110, section 13.2.2: is the representation still the one that the client knows? */
static bool precondition_holds(const struct mk_headers *fields, const struct mk_validators *v, int64_t now)
{
    int64_t since;
    if (mk_headers_has(fields, MK_HEADER_IF_MATCH))
        return list_has_etag(fields, MK_HEADER_IF_MATCH, v, false);
    if (v->modified == MK_MODIFIED_NONE ||
        !parse_date_header(fields, MK_HEADER_IF_UNMODIFIED_SINCE, now, &since))
        return true;
    return v->modified <= since;
}

/* Steps 3 and 4: does the client already have the representation? Dates apply only to GET and HEAD. */
static bool client_has_current(const struct mk_headers *fields, bool reading, const struct mk_validators *v,
                               int64_t now)
{
    int64_t since;
    if (mk_headers_has(fields, MK_HEADER_IF_NONE_MATCH))
        return list_has_etag(fields, MK_HEADER_IF_NONE_MATCH, v, true);
    if (!reading || v->modified == MK_MODIFIED_NONE)
        return false;
    return parse_date_header(fields, MK_HEADER_IF_MODIFIED_SINCE, now, &since) && v->modified <= since;
}

enum mk_precondition mk_precondition_evaluate(const struct mk_headers *fields, enum mk_method method,
                                              const struct mk_validators *validators, int64_t now)
{
    const struct mk_validators *v = validators ? validators : &none;
    bool reading = method == MK_METHOD_GET || method == MK_METHOD_HEAD;
    if (!precondition_holds(fields, v, now))
        return MK_PRECONDITION_FAILED;
    if (!client_has_current(fields, reading, v, now))
        return MK_PRECONDITION_PASS;
    return reading ? MK_PRECONDITION_NOT_MODIFIED : MK_PRECONDITION_FAILED;
}

bool mk_precondition_if_range_holds(const struct mk_headers *fields, const struct mk_validators *validators,
                                    int64_t now)
{
    int64_t since;
    mk_str value = mk_headers_get(fields, MK_HEADER_IF_RANGE);
    if (!value.p)
        return true;
    if (mk_etag_is_valid(value))
        return mk_etag_matches(value, validators->etag, false);
    /* A date is a strong validator only if nothing changed twice in that second (RFC 9110, section 8.8.2.2).
     * The time of a file cannot guarantee that; therefore, a date counts only if there is no entity tag,
     * which the client would have to use instead (section 13.1.5). */
    return !validators->etag.p && parse_date_header(fields, MK_HEADER_IF_RANGE, now, &since) &&
           since == validators->modified && since < now;
}
