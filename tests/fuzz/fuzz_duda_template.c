/* SPDX-License-Identifier: Apache-2.0 */
/* Renders templates: the input is a line of JSON with the values, followed by the template, which may include
 * itself as `p`. */
#include <duda/json.h>
#include <duda/template.h>
#include <errno.h>

#include "base/assert.h"
#include "unit/readers/test_allocator.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { OUT_MAX = 1 << 16, PARTIALS_MAX = 200 };

static unsigned left; /* partials that may still be included: two in each partial would take forever */

static const struct duda_template *find(void *ctx, mk_str name)
{
    return left && mk_str_eq(name, MK_STR("p")) ? (left--, ctx) : NULL;
}

static int asset_url(void *ctx, mk_str name, struct mk_buf *url)
{
    (void)ctx;
    mk_buf_add(url, name);
    return name.len > 1 ? 0 : -ENOENT;
}

static void render(struct duda_template *t, const struct duda_value *value, bool strict)
{
    static char buffer[OUT_MAX], reason[512];
    struct mk_buf out = mk_buf_fixed(buffer, sizeof buffer), why = mk_buf_fixed(reason, sizeof reason);
    const struct duda_render_options how = {
        .find_partial = find, .ctx = t, .strict = strict, .asset_url = asset_url};
    left = PARTIALS_MAX;
    int e = duda_template_render(t, value, &how, &out, &why);
    MK_ASSERT(e == 0 || e == -ENOENT || e == -ELOOP || e == -EINVAL || e == -ENOMEM);
    MK_ASSERT(e == 0 || e == -ENOMEM || why.len);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static char buffer[512];
    mk_str text = mk_str_of((const char *)data, size), line = mk_str_cut(&text, '\n');
    struct mk_buf why = mk_buf_fixed(buffer, sizeof buffer);
    struct duda_validation_errors errors;
    struct duda_value value;
    if (!text.p || duda_json_read_value(line, &pool, NULL, &value, &errors))
        value = duda_value_null();
    struct duda_template *t = duda_template_new(text.p ? text : line, "t", &why);
    MK_ASSERT(t || why.len);
    if (t) {
        render(t, &value, false);
        render(t, &value, true);
    }
    duda_template_free(t);
    pool_free();
    return 0;
}
