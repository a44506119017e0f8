/* SPDX-License-Identifier: Apache-2.0 */
#include <duda/scope.h>

#include "service/duda_ctx.h"
#include "service/share.h"

mk_str duda_scope_of(const struct duda_service_ref *owner)
{
    return owner ? owner->scope : MK_STR("");
}

mk_str duda_scope(struct duda_ctx *d)
{
    return duda_scope_of(d->owner);
}

void duda_scope_add(struct mk_buf *out, mk_str scope, mk_str name)
{
    mk_buf_add(out, scope);
    mk_buf_add_char(out, ':');
    mk_buf_add(out, name);
}

bool duda_scope_is_valid_name(mk_str name)
{
    size_t i = 0;
    while (i < name.len && (mk_char_is_alpha(name.p[i]) || mk_char_is_digit(name.p[i]) || name.p[i] == '-' ||
                            name.p[i] == '_'))
        i++;
    return i == name.len && i > 0 && i <= DUDA_SCOPE_MAX;
}

/* For a host pattern, `host` is the requested name (chosen by the client), a space, and the pattern. */
mk_str duda_scope_state_host(const struct duda_share *share, mk_str host)
{
    bool is_one = share && share->has_all_hosts;
    mk_str id = host;
    mk_str_cut(&id, ' ');
    for (size_t i = 0; share && i < share->n_hosts; i++)
        is_one = is_one || mk_str_eq_nocase(share->hosts[i], host) || mk_str_eq_nocase(share->hosts[i], id);
    return is_one ? MK_STR("\1") : host; /* not a valid host name */
}
