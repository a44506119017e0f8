/* SPDX-License-Identifier: Apache-2.0 */
#include "upstream/codec_cgi.h"

#include "http/scan.h"

static bool str_has_char(mk_str s, char c)
{
    return s.len && memchr(s.p, c, s.len);
}

bool mk_codec_cgi_has_nul(const struct mk_upstream_request_options *options)
{
    for (size_t i = 0; i < options->n_headers; i++) {
        const struct mk_header *f = &options->headers[i];
        if (!mk_codec_cgi_is_reserved(f->name) &&
            (str_has_char(f->name, '\0') || str_has_char(f->value, '\0')))
            return true;
    }
    return false;
}

/* Is the name free of `=`, which would end the name of an environment variable? The last 8 bytes are tested
 * as one word, which may overlap the word before. */
static inline bool is_variable_name(mk_str name)
{
    if (name.len < 8)
        return name.len && !str_has_char(name, '=');
    for (size_t i = 0; i + 8 < name.len; i += 8)
        if (mk_scan_equal(mk_scan_load(name.p + i), '='))
            return false;
    return !mk_scan_equal(mk_scan_load(name.p + name.len - 8), '=');
}

mk_err mk_codec_cgi_check_request(const struct mk_upstream_request_options *options, const char **problem)
{
    *problem = MK_CODEC_CGI_INVALID;
    for (size_t i = 0; i < options->n_headers; i++)
        if (!is_variable_name(options->headers[i].name))
            return -EINVAL;
    *problem = "the content must have a length";
    if (options->length == MK_LENGTH_UNKNOWN)
        return -EINVAL;
    *problem = "only HTTP can switch to another protocol";
    return options->upgrade.len ? -EINVAL : 0;
}

mk_str mk_codec_cgi_content_length(const struct mk_upstream_request_options *options, char digits[MK_NUM_MAX])
{
    bool is_said = options->length > 0 || mk_codec_method_has_body(options->method);
    return is_said ? mk_str_of(digits, mk_num_write(digits, (uint64_t)options->length)) : MK_STR_NULL;
}
