/* SPDX-License-Identifier: Apache-2.0 */
#include "load/option.h"

#include "base/num.h"

bool load_option_parse_number(load_report_error *report_error, const char *name, const char *text,
                              uint64_t least, uint64_t most, uint64_t *out)
{
    if (mk_num_parse(mk_str_from_c(text), out) && *out >= least && *out <= most)
        return true;
    return report_error("%s expects a number from %llu to %llu, not \"%s\"", name, (unsigned long long)least,
                        (unsigned long long)most, text);
}

bool load_option_parse_status(load_report_error *report_error, const char *text, struct load_expected *out)
{
    uint64_t n;
    if (!load_option_parse_number(report_error, "--status", text, 200, 599, &n))
        return false;
    out->status = (unsigned)n;
    return true;
}

bool load_option_parse_length(load_report_error *report_error, const char *text, struct load_expected *out)
{
    out->has_length = true;
    return load_option_parse_number(report_error, "--length", text, 0, INT64_MAX, &out->length);
}

bool load_option_parse_sha1(load_report_error *report_error, const char *text, struct load_expected *out)
{
    mk_str hex = mk_str_from_c(text);
    out->has_sha1 = hex.len == (size_t)2 * MK_SHA1_LEN;
    for (size_t i = 0; out->has_sha1 && i < MK_SHA1_LEN; i++) {
        int high = mk_char_hex(hex.p[2 * i]), low = mk_char_hex(hex.p[2 * i + 1]);
        out->has_sha1 = high >= 0 && low >= 0;
        out->sha1[i] = (unsigned char)(16 * (unsigned)high + (unsigned)low);
    }
    return out->has_sha1 || report_error("--sha1 expects 40 hexadecimal digits, not \"%s\"", text);
}
