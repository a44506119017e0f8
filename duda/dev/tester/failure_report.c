/* SPDX-License-Identifier: Apache-2.0 */
#include "failure_report.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { SHOWN = 160, AHEAD = 24 };

/* Prints the path of a file below the current folder relative to that folder, because the compiler makes
 * paths absolute. */
void tester_report_location(const char *file, int line)
{
    char here[PATH_MAX];
    size_t len = getcwd(here, sizeof here) ? strlen(here) : 0;
    if (len > 1 && strncmp(file, here, len) == 0 && file[len] == '/')
        file += len + 1;
    printf("  %s:%d: ", file, line);
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

void tester_report_body(mk_str content)
{
    if (content.len) {
        printf(" with ");
        print_quoted(content, 0);
    }
    putchar('\n');
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
