/* SPDX-License-Identifier: Apache-2.0 */
#include "hostname.h"

enum { NAME_MAX_LEN = 250 /* with the suffix of a file, at most 255 bytes */, PUBLIC_MAX_LEN = 245 };

static bool is_dns_label(mk_str label)
{
    for (size_t i = 0; i < label.len; i++)
        if (!mk_char_is_alpha(label.p[i]) && !mk_char_is_digit(label.p[i]) && label.p[i] != '-')
            return false;
    return label.len > 0 && label.len < 64 && label.p[0] != '-' && label.p[label.len - 1] != '-';
}

bool acme_hostname_is_valid(mk_str name)
{
    bool has_letter = false; /* whether the last label has a letter; otherwise the name is an address */
    mk_str rest = name;
    while (rest.p) {
        mk_str label = mk_str_cut(&rest, '.');
        if (!is_dns_label(label))
            return false;
        has_letter = mk_char_is_alpha(label.p[0]);
    }
    return name.len <= NAME_MAX_LEN && has_letter;
}

static bool is_lower_case(mk_str name)
{
    for (size_t i = 0; i < name.len; i++)
        if (mk_char_lower(name.p[i]) != name.p[i])
            return false;
    return true;
}

bool acme_hostname_is_public(mk_str name)
{
    static const char *const local[] = {".local", ".localhost", ".internal", ".arpa",
                                        ".onion", ".alt",       ".invalid"};
    if (!acme_hostname_is_valid(name) || name.len > PUBLIC_MAX_LEN || !is_lower_case(name) ||
        mk_str_find(name, '.') == MK_STR_NONE)
        return false;
    for (size_t i = 0; i < sizeof local / sizeof *local; i++)
        if (mk_str_ends(name, mk_str_from_c(local[i])))
            return false;
    return true;
}
