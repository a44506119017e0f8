/* SPDX-License-Identifier: Apache-2.0 */
#include "failure_report.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { SHOWN = 160, AHEAD = 24 };

/* Returns the current folder with a slash at its end; empty if it is unknown. The compiler makes paths
 * absolute, and the reports shorten paths below this folder. */
static mk_str current_folder(char buf[PATH_MAX])
{
    size_t len = getcwd(buf, PATH_MAX - 1) ? strlen(buf) : 0;
    if (len <= 1)
        return MK_STR("");
    buf[len] = '/';
    return mk_str_of(buf, len + 1);
}

void tester_report_location(const char *file, int line)
{
    char buf[PATH_MAX];
    mk_str here = current_folder(buf), path = mk_str_from_c(file);
    path = mk_str_skip(path, mk_str_starts(path, here) ? here.len : 0);
    printf("  %.*s:%d: ", MK_STR_ARG(path), line);
}

static void print_escaped_char(char c)
{
    static const char marks[] = "\n\r\t\"\\", letters[] = "nrt\"\\";
    const char *mark = c ? strchr(marks, c) : NULL;
    if (mark)
        printf("\\%c", letters[mark - marks]);
    else if ((unsigned char)c < 0x20 || c == 0x7f)
        printf("\\x%02x", (unsigned char)c);
    else
        putchar(c);
}

/* Prints the text as a C string literal, so that blanks and line endings are visible. Does not split UTF-8
 * characters. */
static void print_quoted(mk_str text, size_t from)
{
    size_t i = from, end = from + SHOWN < text.len ? from + SHOWN : text.len;
    while (end < text.len && ((unsigned char)text.p[end] & 0xc0) == 0x80)
        end++;
    if (!text.p) {
        printf("nothing");
        return;
    }
    printf("%s\"", from ? "..." : "");
    while (i < end)
        print_escaped_char(text.p[i++]);
    printf("\"%s", end < text.len ? "..." : "");
}

/* Returns where to start printing: at the beginning, or shortly before the first difference if the common
 * prefix is long. */
static size_t difference_start(mk_str a, mk_str b)
{
    size_t i = 0;
    while (i < a.len && i < b.len && a.p[i] == b.p[i])
        i++;
    if (i < SHOWN / 2)
        return 0;
    i -= AHEAD;
    while (i > 0 && ((unsigned char)a.p[i] & 0xc0) == 0x80)
        i--;
    return i;
}

void tester_report_difference(const char *expression, mk_str got, mk_str expected)
{
    size_t from = difference_start(got, expected);
    printf("%s: expected ", expression);
    print_quoted(expected, from);
    printf(", got ");
    print_quoted(got, from);
    putchar('\n');
}

void tester_report_missing_part(const char *expression, mk_str got, mk_str part)
{
    printf("%s: expected ", expression);
    print_quoted(part, 0);
    printf(" in it, got ");
    print_quoted(got, 0);
    putchar('\n');
}

static void print_reason_line(mk_str line)
{
    char buf[PATH_MAX];
    mk_str here = current_folder(buf);
    const char *at;
    printf("    ");
    while (here.len && line.len && (at = memmem(line.p, line.len, here.p, here.len))) {
        printf("%.*s", (int)(at - line.p), line.p);
        line = mk_str_skip(line, (size_t)(at - line.p) + here.len);
    }
    printf("%.*s\n", MK_STR_ARG(line));
}

void tester_report_response(const struct duda_test_response *response, bool is_error_page)
{
    mk_str location = duda_test_response_header(*response, "Location"), rest = response->reason;
    if (location.len) {
        printf(" to ");
        print_quoted(location, 0);
    }
    if (response->body.len && !is_error_page) {
        printf(" with ");
        print_quoted(response->body, 0);
    }
    putchar('\n');
    while (rest.len)
        print_reason_line(mk_str_cut(&rest, '\n'));
}

static void print_json(mk_str value)
{
    mk_str shown = mk_str_first(value, SHOWN);
    if (!value.p)
        printf("nothing");
    else
        printf("%.*s%s", MK_STR_ARG(shown), shown.len < value.len ? "..." : "");
}

void tester_report_json(mk_str got, mk_str expected)
{
    printf("expected ");
    print_json(expected);
    printf(", got ");
    print_json(got);
    putchar('\n');
}
