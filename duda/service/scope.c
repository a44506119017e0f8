/* SPDX-License-Identifier: Apache-2.0 */
#include <duda/scope.h>

#include "service/duda_ctx.h"

mk_str duda_scope_of(const struct duda_service_ref *owner)
{
    return owner ? owner->scope : MK_STR("");
}

mk_str duda_scope(const struct duda_ctx *d)
{
    return duda_scope_of(d->owner);
}

void duda_scope_add(struct mk_buf *out, mk_str scope, mk_str name)
{
    mk_buf_add(out, scope);
    mk_buf_add_char(out, ':');
    mk_buf_add(out, name);
}
