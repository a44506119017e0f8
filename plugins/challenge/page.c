/* SPDX-License-Identifier: Apache-2.0 */
#include "page.h"

#include <monkey/text.h>

/* Returns MK_STR_NONE if the text does not contain the mark. */
static size_t find_mark(mk_str text)
{
    for (size_t i = 0; i < text.len; i++)
        if (mk_str_starts(mk_str_skip(text, i), MK_STR(CHALLENGE_PAGE_MARK)))
            return i;
    return MK_STR_NONE;
}

bool challenge_page_split(mk_str html, struct challenge_page *page)
{
    size_t at = find_mark(html);
    if (at == MK_STR_NONE)
        return false;
    page->before = mk_str_first(html, at);
    page->after = mk_str_skip(html, at + strlen(CHALLENGE_PAGE_MARK));
    return find_mark(page->after) == MK_STR_NONE;
}

void challenge_page_write(const struct challenge_page *page, mk_str task, struct mk_buf *out)
{
    mk_buf_add(out, page->before);
    mk_buf_add(out, MK_STR("<script data-token=\""));
    mk_buf_add(out, task);
    mk_buf_add(out, MK_STR("\">"));
    mk_buf_add(out, challenge_page_script);
    mk_buf_add(out, MK_STR("</script>"));
    mk_buf_add(out, page->after);
}

/* A page in a frame of another site would not get the cookie (SameSite), and ask for it again and again. */
void challenge_page_write_policy(struct mk_buf *out)
{
    char hash[32];
    mk_sha256(challenge_page_script, hash);
    mk_buf_add(out,
               MK_STR("default-src 'self'; img-src 'self' data:; style-src 'self' 'unsafe-inline'; "
                      "base-uri 'none'; form-action 'none'; frame-ancestors 'self'; script-src 'sha256-"));
    mk_base64_encode(out, mk_str_of(hash, sizeof hash));
    mk_buf_add_char(out, '\'');
}
