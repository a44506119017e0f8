/* SPDX-License-Identifier: Apache-2.0 */
#include "conf/reference.h"

#include "unit/conf/sample.h"
#include "unit/test.h"

static const char *reference(const struct mk_conf_table *table)
{
    static char buffer[8192];
    struct mk_buf b = mk_buf_fixed(buffer, sizeof buffer - 1);
    mk_conf_reference_print(table, &b);
    assert_false(b.failed);
    buffer[b.len] = '\0';
    return buffer;
}

static void conf_reference_is_markdown(void **state)
{
    (void)state;
    const char *text = reference(&sample_table);
    static const char head[] =
        "## [SERVER]\n\nThe server.\n\n| Key | Value | Default | Meaning |\n|---|---|---|---|\n";
    assert_memory_equal(text, head, sizeof head - 1);
    static const char *const rows[] = {
        "\n| `KeepAlive` | on or off | `on` | Answer more than one request per connection. |\n",
        "\n| `Workers` | a number from 2 to 64, or auto | `auto` | Processes. |\n",
        ("\n| `MaxRequestSize` | a size (B, K, M, G) from 4K to 1G; a bare number counts 1K | `32` | Largest "
         "request. |\n"),
        "\n| `Level` | a number up to 255 | - | A small \\| number. |\n",
        "\n| `DocumentRoot` | text | required | The folder. |\n",
        "\n| `Title` | text up to 30 bytes; may be empty | `Hello, \"world\"` | The title. |\n",
        "\n| `IndexFile` | words; may be empty; may repeat | `index.html \"my index\"` | Tried in order. |\n",
        "\n| `Port` | a port; may repeat | `80` | Where. |\n",
        "\n| `Host` | - | - | Another name of `ServerName`. |\n",
        "\n| `MaxTime` | - | - | Deprecated. Another name of `Timeout`. |\n",
        "\n| `FDT` | - | - | No longer has an effect. Files are shared always. |\n\n",
    };
    for (size_t i = 0; i < MK_LEN(rows); i++)
        if (!strstr(text, rows[i]))
            fail_msg("no %s in\n%s", rows[i], text);
}

static void conf_reference_describes_free_entries(void **state)
{
    (void)state;
    assert_string_equal(
        reference(&route_table),
        "## [ROUTES]\n\nThe section may repeat.\n\nEntries: `pattern handler`\n\nThe first match "
        "wins.\n\n| Key | Value | Default | Meaning |\n|---|---|---|---|\n"
        "| `Default` | text | `static` | For what no pattern matches. |\n\n");
}

static void conf_reference_names_default_units(void **state)
{
    (void)state;
    const struct mk_conf_key keys[] = {{.name = "T",
                                        .type = MK_CONF_TIME,
                                        MK_CONF_AT(struct sample, size),
                                        .unit = 60000,
                                        .default_value = "1",
                                        .help = "x"}};
    const struct mk_conf_table table = {.section = "T", .keys = keys, .n = 1};
    assert_non_null(
        strstr(reference(&table), "| `T` | a time (ms, s, m, h, d); a bare number counts 1m | `1` | x |"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(conf_reference_is_markdown),
        cmocka_unit_test(conf_reference_describes_free_entries),
        cmocka_unit_test(conf_reference_names_default_units),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
