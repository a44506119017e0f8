/* SPDX-License-Identifier: Apache-2.0 */
#include "text/template_filter.h"

#include <duda/json.h>
#include <monkey/text.h>
#include <monkey/utf8.h>
#include <stdio.h>
#include <time.h>

enum { DECIMALS_MAX = 15, NUMBER_ROOM = 400 };

struct filter {
    mk_str name;
    enum duda_template_filter id;
    uint8_t args_min, args_max;
    bool takes_number; /* the first argument is a number */
};

static const struct filter filters[] = {
    {MK_STR_INIT("asset"), DUDA_FILTER_ASSET, 0, 0, false},
    {MK_STR_INIT("date"), DUDA_FILTER_DATE, 0, 1, false},
    {MK_STR_INIT("default"), DUDA_FILTER_DEFAULT, 1, 1, false},
    {MK_STR_INIT("json"), DUDA_FILTER_JSON, 0, 0, false},
    {MK_STR_INIT("lower"), DUDA_FILTER_LOWER, 0, 0, false},
    {MK_STR_INIT("number"), DUDA_FILTER_NUMBER, 0, 2, true},
    {MK_STR_INIT("truncate"), DUDA_FILTER_TRUNCATE, 1, 2, true},
    {MK_STR_INIT("upper"), DUDA_FILTER_UPPER, 0, 0, false},
    {MK_STR_INIT("url"), DUDA_FILTER_URL, 0, 0, false},
};

static const struct filter *find_filter(mk_str name)
{
    for (size_t i = 0; i < MK_LEN(filters); i++)
        if (mk_str_eq(filters[i].name, name))
            return &filters[i];
    return NULL;
}

/* ---- Parsing ---- */

enum token { TOKEN_END, TOKEN_BAR, TOKEN_WORD, TOKEN_LITERAL, TOKEN_OPEN_LITERAL };

static bool is_blank(char c)
{
    return (unsigned char)c <= ' ';
}

static enum token next_token(mk_str *rest, mk_str *out)
{
    while (rest->len && is_blank(rest->p[0]))
        *rest = mk_str_skip(*rest, 1);
    if (!rest->len)
        return TOKEN_END;
    char first = rest->p[0];
    size_t len = 1;
    if (first == '"' || first == '\'') {
        size_t end = mk_str_find(mk_str_skip(*rest, 1), first);
        if (end == MK_STR_NONE)
            return TOKEN_OPEN_LITERAL;
        *out = mk_str_of(rest->p + 1, end);
        *rest = mk_str_skip(*rest, end + 2);
        return TOKEN_LITERAL;
    }
    while (first != '|' && len < rest->len && !is_blank(rest->p[len]) && rest->p[len] != '|')
        len++;
    *out = mk_str_first(*rest, len);
    *rest = mk_str_skip(*rest, len);
    return first == '|' ? TOKEN_BAR : TOKEN_WORD;
}

static bool is_date_format(mk_str format)
{
    for (size_t i = 0; i < format.len; i++)
        if (format.p[i] == '%' && (++i == format.len || !strchr("AaBbdeFHIjMmpRSTYy%", format.p[i])))
            return false;
    return true;
}

static const char *check_arguments(const struct filter *f, const struct duda_template_call *call)
{
    uint64_t n;
    if (call->n_args < f->args_min)
        return "the filter lacks an argument";
    if (call->n_args && f->takes_number && (!mk_num_parse(call->args[0], &n) || n > UINT32_MAX))
        return "the first argument of the filter must be a number";
    if (f->id == DUDA_FILTER_NUMBER && call->n_args && mk_num_parse(call->args[0], &n) && n > DECIMALS_MAX)
        return "the filter `number` writes at most 15 decimals";
    if (f->id == DUDA_FILTER_NUMBER && call->n_args == 2 && call->args[1].len != 2)
        return "the second argument of `number` consists of the thousands and the decimal separator: \",.\"";
    if (f->id == DUDA_FILTER_DATE && call->n_args && !is_date_format(call->args[0]))
        return "the format of `date` may contain %A %a %B %b %d %e %F %H %I %j %M %m %p %R %S %T %Y %y and "
               "%%";
    return NULL;
}

/* Parses the arguments up to the next bar. Sets *more if another filter follows. */
static const char *parse_arguments(const struct filter *f, mk_str *rest, struct duda_template_call *call,
                                   bool *more)
{
    for (;;) {
        mk_str text;
        enum token token = next_token(rest, &text);
        *more = token == TOKEN_BAR;
        if (token == TOKEN_END || token == TOKEN_BAR)
            return check_arguments(f, call);
        if (token == TOKEN_OPEN_LITERAL)
            return "the quote is not closed";
        if (call->n_args == f->args_max)
            return "the filter has too many arguments";
        call->args[call->n_args++] = text;
    }
}

const char *duda_template_filter_parse(mk_str rest, struct duda_template_call *calls, size_t *n)
{
    mk_str text;
    bool more = next_token(&rest, &text) == TOKEN_BAR;
    while (more) {
        const struct filter *f = next_token(&rest, &text) == TOKEN_WORD ? find_filter(text) : NULL;
        if (!f)
            return "there is no such filter; the filters are asset, date, default, json, lower, number, "
                   "truncate, upper and url";
        if (*n == DUDA_TEMPLATE_CALLS_MAX)
            return "the tag has too many filters";
        calls[*n] = (struct duda_template_call){.filter = f->id};
        const char *error = parse_arguments(f, &rest, &calls[(*n)++], &more);
        if (error)
            return error;
    }
    return NULL;
}

bool duda_template_filter_parse_function(mk_str *rest, mk_str *literal, struct duda_template_call *call)
{
    mk_str after = *rest, name;
    if (next_token(&after, &name) != TOKEN_WORD || next_token(&after, literal) != TOKEN_LITERAL)
        return false;
    const struct filter *f = find_filter(name);
    if (!f || f->args_min)
        return false;
    *call = (struct duda_template_call){.filter = f->id};
    *rest = after;
    return true;
}

/* ---- Letters ---- */

/* Ranges of letters. Upper and lower case are two blocks with a fixed distance, or alternate. */
static const struct letter_range {
    uint32_t upper_first, upper_last, distance; /* 1: alternating, upper case is even; 0: odd */
} letter_ranges[] = {
    {'A', 'Z', 32},    {0xc0, 0xd6, 32},   {0xd8, 0xde, 32},   {0x100, 0x137, 1},   {0x139, 0x148, 0},
    {0x14a, 0x177, 1}, {0x391, 0x3a1, 32}, {0x3a3, 0x3ab, 32}, {0x400, 0x40f, 80},  {0x410, 0x42f, 32},
    {0x460, 0x481, 1}, {0x48a, 0x4bf, 1},  {0x4d0, 0x52f, 1},  {0x1e00, 0x1e95, 1}, {0x1ea0, 0x1eff, 1},
};

static uint32_t change_case(uint32_t c, bool upper)
{
    for (size_t i = 0; i < MK_LEN(letter_ranges); i++) {
        const struct letter_range *r = &letter_ranges[i];
        if (r->distance > 1) {
            uint32_t first = upper ? r->upper_first + r->distance : r->upper_first;
            if (c >= first && c - first <= r->upper_last - r->upper_first)
                return upper ? c - r->distance : c + r->distance;
        } else if (c >= r->upper_first && c <= r->upper_last) {
            bool is_upper = (c & 1) != r->distance;
            return is_upper == upper ? c : upper ? c - 1 : c + 1;
        }
    }
    return c;
}

static void write_in_case(struct mk_buf *out, mk_str text, bool upper)
{
    while (text.len) {
        char bytes[4];
        uint32_t c;
        size_t len = mk_utf8_decode(text, &c);
        mk_str one = mk_str_first(text, len ? len : 1);
        if (len)
            one = mk_str_of(bytes, mk_utf8_encode(bytes, change_case(c, upper)));
        mk_buf_add(out, one);
        text = mk_str_skip(text, len ? len : 1);
    }
}

/* Returns the length in bytes of the first n characters. */
static size_t offset_of_char(mk_str text, uint64_t n)
{
    size_t at = 0;
    while (n-- && at < text.len) {
        size_t len = mk_utf8_char_len(mk_str_skip(text, at));
        at += len ? len : 1;
    }
    return at;
}

/* Writes at most `max` characters, including the mark for the text that is cut off. */
static void write_truncated(struct mk_buf *out, mk_str text, uint64_t max, mk_str mark)
{
    uint64_t mark_len = 0;
    if (offset_of_char(text, max) >= text.len) {
        mk_buf_add(out, text);
        return;
    }
    while (offset_of_char(mark, mark_len) < mark.len)
        mark_len++;
    mk_buf_add(out, mk_str_first(text, offset_of_char(text, max > mark_len ? max - mark_len : 0)));
    if (mark_len <= max)
        mk_buf_add(out, mark);
}

/* ---- Numbers and times ---- */

static bool format_plain_number(const struct duda_value *v, int decimals, char *out, size_t cap)
{
    double number = v->of.number;
    switch ((int)v->kind) {
    case DUDA_VALUE_INTEGER:
        snprintf(out, cap, "%lld%s%.*s", (long long)v->of.integer, decimals > 0 ? "." : "",
                 decimals > 0 ? decimals : 0, "000000000000000");
        return true;
    case DUDA_VALUE_UNSIGNED:
        snprintf(out, cap, "%llu%s%.*s", (unsigned long long)v->of.uinteger, decimals > 0 ? "." : "",
                 decimals > 0 ? decimals : 0, "000000000000000");
        return true;
    case DUDA_VALUE_TEXT:
        if (!mk_num_parse_double(v->of.text, &number))
            return false;
        break;
    case DUDA_VALUE_NUMBER:
        break;
    default:
        return false;
    }
    if (number - number != 0) /* infinity, NaN */
        return false;
    if (decimals < 0) { /* as many decimals as the number needs, without an exponent */
        for (decimals = 0; decimals < DECIMALS_MAX; decimals++) {
            double shown;
            snprintf(out, cap, "%.*f", decimals, number);
            if (mk_num_parse_double(mk_str_from_c(out), &shown) && !(shown < number) && !(shown > number))
                return true;
        }
    }
    snprintf(out, cap, "%.*f", decimals, number);
    return true;
}

static const char *write_number(struct mk_buf *out, const struct duda_value *v,
                                const struct duda_template_call *call)
{
    char plain[NUMBER_ROOM];
    uint64_t decimals = 0;
    mk_str separators = call->n_args == 2 ? call->args[1] : MK_STR(",.");
    if (call->n_args)
        (void)mk_num_parse(call->args[0], &decimals);
    if (!format_plain_number(v, call->n_args ? (int)decimals : -1, plain, sizeof plain))
        return "is not a number";
    mk_str rest = mk_str_from_c(plain), whole = mk_str_cut(&rest, '.');
    if (whole.p[0] == '-') {
        mk_buf_add_char(out, '-');
        whole = mk_str_skip(whole, 1);
    }
    for (size_t i = 0; i < whole.len; i++) {
        if (i && (whole.len - i) % 3 == 0)
            mk_buf_add_char(out, separators.p[0]);
        mk_buf_add_char(out, whole.p[i]);
    }
    if (rest.p)
        mk_buf_addf(out, "%c%.*s", separators.p[1], MK_STR_ARG(rest));
    return NULL;
}

static const char *const months[] = {"January", "February", "March",     "April",   "May",      "June",
                                     "July",    "August",   "September", "October", "November", "December"};
static const char *const days[] = {"Sunday",   "Monday", "Tuesday", "Wednesday",
                                   "Thursday", "Friday", "Saturday"};

/* Writes one conversion of strftime(), in English. */
static void write_time_part(struct mk_buf *out, char c, const struct tm *t)
{
    switch (c) {
    case 'A':
        mk_buf_addf(out, "%s", days[t->tm_wday]);
        break;
    case 'a':
        mk_buf_addf(out, "%.3s", days[t->tm_wday]);
        break;
    case 'B':
        mk_buf_addf(out, "%s", months[t->tm_mon]);
        break;
    case 'b':
        mk_buf_addf(out, "%.3s", months[t->tm_mon]);
        break;
    case 'd':
        mk_buf_addf(out, "%02d", t->tm_mday);
        break;
    case 'e':
        mk_buf_addf(out, "%d", t->tm_mday);
        break;
    case 'F':
        mk_buf_addf(out, "%04d-%02d-%02d", t->tm_year + 1900, t->tm_mon + 1, t->tm_mday);
        break;
    case 'H':
        mk_buf_addf(out, "%02d", t->tm_hour);
        break;
    case 'I':
        mk_buf_addf(out, "%02d", (t->tm_hour + 11) % 12 + 1);
        break;
    case 'j':
        mk_buf_addf(out, "%03d", t->tm_yday + 1);
        break;
    case 'M':
        mk_buf_addf(out, "%02d", t->tm_min);
        break;
    case 'm':
        mk_buf_addf(out, "%02d", t->tm_mon + 1);
        break;
    case 'p':
        mk_buf_addf(out, "%s", t->tm_hour < 12 ? "AM" : "PM");
        break;
    case 'R':
        mk_buf_addf(out, "%02d:%02d", t->tm_hour, t->tm_min);
        break;
    case 'S':
        mk_buf_addf(out, "%02d", t->tm_sec);
        break;
    case 'T':
        mk_buf_addf(out, "%02d:%02d:%02d", t->tm_hour, t->tm_min, t->tm_sec);
        break;
    case 'Y':
        mk_buf_addf(out, "%04d", t->tm_year + 1900);
        break;
    case 'y':
        mk_buf_addf(out, "%02d", (t->tm_year + 1900) % 100);
        break;
    default:
        mk_buf_add_char(out, c);
    }
}

static const char *write_date(struct mk_buf *out, const struct duda_value *v,
                              const struct duda_template_call *call)
{
    struct tm parts;
    bool is_timestamp = v->kind == DUDA_VALUE_TIMESTAMP;
    if (!is_timestamp && v->kind != DUDA_VALUE_INTEGER)
        return "is not a time: `date` takes timestamps, and seconds since 1970";
    int64_t seconds = v->of.integer;
    if (is_timestamp)
        seconds = seconds / 1000000 - (seconds % 1000000 < 0);
    time_t time = (time_t)seconds;
    if (time != seconds || !gmtime_r(&time, &parts) || parts.tm_year < -1900 || parts.tm_year > 8099)
        return "is not in the years 0 to 9999";
    mk_str format = call->n_args ? call->args[0] : MK_STR("%Y-%m-%d");
    for (size_t i = 0; i < format.len; i++) {
        if (format.p[i] == '%')
            write_time_part(out, format.p[++i], &parts);
        else
            mk_buf_add_char(out, format.p[i]);
    }
    return NULL;
}

/* ---- JSON ---- */

/* Writes JSON that is safe in a <script> element, too: the characters that could end the element occur only
 * in strings, and are escaped. */
static void write_json(struct mk_buf *out, const struct duda_value *v)
{
    size_t begin = out->len, from = 0;
    duda_json_write(out, v);
    mk_str json = mk_str_skip(mk_buf_str(out), begin);
    while (from < json.len && !strchr("<>&", json.p[from]))
        from++;
    if (from == json.len)
        return;
    struct mk_buf escaped = mk_buf_growing(out->max);
    for (size_t i = 0; i < json.len; i++) {
        if (json.p[i] == '<' || json.p[i] == '>' || json.p[i] == '&')
            mk_buf_addf(&escaped, "\\u%04x", (unsigned)json.p[i]);
        else
            mk_buf_add_char(&escaped, json.p[i]);
    }
    out->len = begin;
    mk_buf_add(out, mk_buf_str(&escaped));
    out->failed |= escaped.failed;
    mk_buf_free(&escaped);
}

/* ---- Applying ---- */

static bool lacks_content(const struct duda_value *v)
{
    return v->kind == DUDA_VALUE_NULL || (v->kind == DUDA_VALUE_TEXT && !v->of.text.len) ||
           (duda_value_is_list(v) && !v->n);
}

/* Returns the text of a scalar value. Other values than strings are formatted into `scalar`. */
static mk_str text_of_value(const struct duda_value *v, struct mk_buf *scalar)
{
    if (v->kind == DUDA_VALUE_TEXT || v->kind == DUDA_VALUE_RAW)
        return v->of.text;
    duda_value_write(scalar, v);
    return mk_buf_str(scalar);
}

static const char *write_asset_url(struct mk_buf *out, mk_str name, const struct duda_render_options *options)
{
    if (!options->asset_url)
        return "names an asset, but the service has none: see DUDA_ASSETS()";
    return options->asset_url(options->ctx, name, out) ? "names an asset that does not exist" : NULL;
}

static const char *write_filtered_text(struct mk_buf *out, mk_str text, const struct duda_template_call *call,
                                       const struct duda_render_options *options)
{
    uint64_t max = 0;
    switch ((int)call->filter) {
    case DUDA_FILTER_URL:
        mk_url_escape_component(out, text);
        return NULL;
    case DUDA_FILTER_TRUNCATE:
        (void)mk_num_parse(call->args[0], &max);
        write_truncated(out, text, max, call->n_args == 2 ? call->args[1] : MK_STR("\xe2\x80\xa6"));
        return NULL;
    case DUDA_FILTER_ASSET:
        return write_asset_url(out, text, options);
    default:
        write_in_case(out, text, call->filter == DUDA_FILTER_UPPER);
        return NULL;
    }
}

static const char *write_filtered_scalar(struct mk_buf *out, const struct duda_value *v,
                                         const struct duda_template_call *call,
                                         const struct duda_render_options *options)
{
    struct mk_buf scalar = mk_buf_growing(out->max); /* the base64 of bytes may be long */
    const char *error = write_filtered_text(out, text_of_value(v, &scalar), call, options);
    out->failed |= scalar.failed;
    mk_buf_free(&scalar);
    return error;
}

const char *duda_template_filter_apply(const struct duda_template_call *call, struct duda_value *v,
                                       const struct duda_render_options *options, struct mk_buf *room)
{
    const char *error = NULL;
    if (call->filter == DUDA_FILTER_DEFAULT) {
        if (lacks_content(v))
            *v = duda_value_text(call->args[0]);
        return NULL;
    }
    if (v->kind == DUDA_VALUE_NULL && call->filter != DUDA_FILTER_JSON)
        return NULL;
    mk_buf_clear(room);
    if (call->filter == DUDA_FILTER_JSON)
        write_json(room, v);
    else if (call->filter == DUDA_FILTER_NUMBER)
        error = write_number(room, v, call);
    else if (call->filter == DUDA_FILTER_DATE)
        error = write_date(room, v, call);
    else
        error = write_filtered_scalar(room, v, call, options);
    *v = duda_value_text(room->len ? mk_buf_str(room) : MK_STR(""));
    return error;
}
