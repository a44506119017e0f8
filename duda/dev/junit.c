/* SPDX-License-Identifier: Apache-2.0 */
#include "junit.h"

#include <stdio.h>

enum { TEXT_MAX = 64 * 1024 * 1024, OUTPUT_MAX = 64 * 1024 };

void dev_junit_init(struct dev_junit *j)
{
    *j = (struct dev_junit){.cases = mk_buf_growing(TEXT_MAX)};
}

void dev_junit_free(struct dev_junit *j)
{
    mk_buf_free(&j->cases);
}

/* XML does not allow most control characters, even as references. Non-ASCII bytes are replaced as well: a
 * truncated message may end in invalid UTF-8. */
static void append_xml(struct mk_buf *out, mk_str text)
{
    for (size_t i = 0; i < text.len; i++) {
        unsigned char c = (unsigned char)text.p[i];
        if (c == '<' || c == '>' || c == '&' || c == '"')
            mk_buf_addf(out, "&#%u;", c);
        else if (c == '\n' || c == '\t' || (c >= 0x20 && c < 0x7f))
            mk_buf_add_char(out, (char)c);
        else
            mk_buf_add_char(out, '?');
    }
}

void dev_junit_add(struct dev_junit *j, const char *file, const char *name, bool ok, uint64_t us,
                   mk_str output)
{
    j->n++;
    j->failed += !ok;
    j->us += us;
    mk_buf_add(&j->cases, MK_STR("  <testcase classname=\""));
    append_xml(&j->cases, mk_str_from_c(file));
    mk_buf_add(&j->cases, MK_STR("\" name=\""));
    append_xml(&j->cases, mk_str_from_c(name));
    mk_buf_addf(&j->cases, "\" time=\"%llu.%06llu\"", (unsigned long long)(us / 1000000),
                (unsigned long long)(us % 1000000));
    if (ok) {
        mk_buf_add(&j->cases, MK_STR("/>\n"));
        return;
    }
    mk_str rest = output, first = mk_str_trim(mk_str_cut(&rest, '\n'));
    mk_buf_add(&j->cases, MK_STR(">\n    <failure message=\""));
    append_xml(&j->cases, first);
    mk_buf_add(&j->cases, MK_STR("\">"));
    append_xml(&j->cases, mk_str_first(output, OUTPUT_MAX));
    mk_buf_add(&j->cases, MK_STR("</failure>\n  </testcase>\n"));
}

bool dev_junit_write(const struct dev_junit *j, const char *path)
{
    FILE *f = fopen(path, "we");
    if (!f)
        return false;
    fprintf(
        f,
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
        "<testsuite name=\"monkey test\" tests=\"%zu\" failures=\"%zu\" errors=\"0\" time=\"%llu.%06llu\">\n",
        j->n, j->failed, (unsigned long long)(j->us / 1000000), (unsigned long long)(j->us % 1000000));
    bool ok = j->cases.len == 0 || fwrite(j->cases.p, 1, j->cases.len, f) == j->cases.len;
    ok = fputs("</testsuite>\n", f) >= 0 && ok;
    return fclose(f) == 0 && ok;
}
