/* SPDX-License-Identifier: Apache-2.0 */
/* Mustache templates: a test case for each rule, with values written as JSON. */
#include <duda/json.h>
#include <duda/template.h>
#include <errno.h>

#include "unit/duda/person.h"
#include "unit/readers/test_allocator.h"
#include "unit/test.h"

struct example {
    const char *values, *text, *result;
    const char *partial; /* text of the partial template `p` */
};

static char buffer[8192], reasons[1024];
static struct mk_buf why;

static const struct duda_template *find(void *ctx, mk_str name)
{
    return duda_templates_find(ctx, name);
}

static int render(const struct example *c, bool strict, struct mk_buf *out)
{
    struct duda_validation_errors errors;
    struct duda_value value;
    why = mk_buf_fixed(reasons, sizeof reasons);
    *out = mk_buf_fixed(buffer, sizeof buffer);
    assert_int_equal(duda_json_read_value(mk_str_from_c(c->values), &pool, NULL, &value, &errors), 0);
    struct duda_templates *set = duda_templates_new();
    int e = duda_templates_add(set, "page", mk_str_from_c(c->text), &why);
    if (!e && c->partial)
        e = duda_templates_add(set, "p", mk_str_from_c(c->partial), &why);
    const struct duda_render_options how = {.find_partial = find, .ctx = set, .strict = strict};
    if (!e)
        e = duda_template_render(duda_templates_find(set, MK_STR("page")), &value, &how, out, &why);
    duda_templates_free(set);
    return e;
}

static void run(const struct example *cases, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        struct mk_buf out;
        int e = render(&cases[i], false, &out);
        if (e || !mk_str_eq(mk_buf_str(&out), mk_str_from_c(cases[i].result)))
            fail_msg("case %zu: \"%s\" with %s: %d, \"%.*s\" is not \"%s\" (%.*s)", i, cases[i].text,
                     cases[i].values, e, MK_STR_ARG(mk_buf_str(&out)), cases[i].result,
                     MK_STR_ARG(mk_buf_str(&why)));
    }
}

static void template_values_are_rendered(void **state)
{
    (void)state;
    static const struct example cases[] = {
        {"{}", "", "", NULL},
        {"{}", "no tags { } }} here", "no tags { } }} here", NULL},
        {"{\"a\":\"x\"}", "1{{a}}2{{ a }}3{{\n\ta\n}}4", "1x2x3x4", NULL},
        {"{\"a\":\"<b> & \\\"c\\\" 'd'\"}", "{{a}}", "&lt;b&gt; &amp; &quot;c&quot; &#39;d&#39;", NULL},
        {"{\"a\":\"<b>\"}", "{{{a}}}{{& a }}{{{ a }}}{{&a}}", "<b><b><b><b>", NULL},
        {"{\"a\":85,\"b\":1.21,\"c\":true,\"d\":-3}", "{{a}} {{{b}}} {{&c}} {{d}}", "85 1.21 true -3", NULL},
        {"{\"a\":null,\"l\":[1],\"m\":{}}", "({{a}}{{none}}{{l}}{{m}}{{&none}}{{{none.at.all}}})", "()",
         NULL},
        {"{\"a\":{\"b\":{\"c\":\"x\"}}}", "{{a.b.c}}{{a.b.d}}{{a.c}}|{{#a}}{{b.c}}{{/a}}", "x|x", NULL},
        {"{\"a\":\" x \"}", " {{a}} \n  {{{a}}}\n", "  x  \n   x \n", NULL},
        {"7", "{{.}}", "7", NULL},
        /* The lookup finds the inner `a` first, and so does not use the outer one, which has a `b`. */
        {"{\"a\":{\"b\":1},\"s\":{\"a\":{}}}", "{{#s}}({{a.b}}){{/s}}", "()", NULL},
    };
    run(cases, MK_LEN(cases));
}

static void template_sections_are_rendered(void **state)
{
    (void)state;
    static const struct example cases[] = {
        {"{\"t\":true,\"f\":false,\"n\":null,\"e\":[],\"s\":\"\",\"z\":0}",
         "{{#t}}t{{/t}}{{#f}}f{{/f}}{{#n}}n{{/n}}{{#e}}e{{/e}}{{#s}}s{{/s}}{{#z}}z{{/z}}{{#x}}x{{/x}}", "tz",
         NULL},
        {"{\"t\":true,\"f\":false,\"n\":null,\"e\":[],\"s\":\"\"}",
         "{{^t}}t{{/t}}{{^f}}f{{/f}}{{^n}}n{{/n}}{{^e}}e{{/e}}{{^s}}s{{/s}}{{^x}}x{{/x}}", "fnesx", NULL},
        {"{\"l\":[{\"a\":1},{\"a\":2},{\"b\":3}],\"a\":9}", "{{#l}}{{a}},{{/l}}", "1,2,9,", NULL},
        {"{\"l\":[\"a\",2,3.5,\"<\"]}", "{{#l}}({{.}}){{/l}}{{#l}}{{{.}}}{{/l}}", "(a)(2)(3.5)(&lt;)a23.5<",
         NULL},
        {"{\"l\":[[1,2],[3]]}", "{{#l}}[{{#.}}{{.}}{{/.}}]{{/l}}", "[12][3]", NULL},
        {"{\"a\":{\"b\":1,\"c\":{\"d\":2}}}", "{{#a}}{{b}}{{#c}}{{b}}{{d}}{{/c}}{{/a}}", "112", NULL},
        {"{\"a\":{\"b\":{\"c\":true}}}", "{{#a.b.c}}y{{/a.b.c}}{{^a.b.d}}n{{/a.b.d}}", "yn", NULL},
        {"{\"a\":true}", "{{#a}}1{{#a}}2{{/a}}3{{/a}}{{^a}}4{{#a}}5{{/a}}{{/a}}", "123", NULL},
        {"{\"a\":true}", "| {{# a }} x {{/\ta\t}} |", "|  x  |", NULL},
        {"{\"a\":\"text\"}", "{{#a}}{{.}} {{a}}{{/a}}", "text text", NULL},
    };
    run(cases, MK_LEN(cases));
}

static void template_standalone_lines_are_removed(void **state)
{
    (void)state;
    static const struct example cases[] = {
        {"{\"a\":true}", "x\n{{#a}}\ny\n{{/a}}\nz\n", "x\ny\nz\n", NULL},
        {"{\"a\":true}", "x\n  {{#a}}  \ny\n\t{{/a}}\t\nz", "x\ny\nz", NULL},
        {"{\"a\":true}", "{{#a}}\r\nx\r\n{{/a}}\r\n", "x\r\n", NULL},
        {"{\"a\":true}", "  {{#a}}\nx\n  {{/a}}", "x\n", NULL},
        {"{\"a\":true}", " {{#a}}x{{/a}}\n {{#a}} {{/a}}\n", " x\n  \n", NULL},
        {"{}", "x\n{{! said }}\ny {{! aside }} z\n  {{!\n over\n lines }}\nw", "x\ny  z\nw", NULL},
        {"{}", "{{^a}}\n1\n{{/a}}\n{{^a}}\n2\n{{/a}}", "1\n2\n", NULL},
        {"{\"a\":1}", " {{a}}\n", " 1\n", NULL},
    };
    run(cases, MK_LEN(cases));
}

static void template_delimiters_can_change(void **state)
{
    (void)state;
    static const struct example cases[] = {
        {"{\"a\":1}", "{{=<% %>=}}{{a}}<%a%>", "{{a}}1", NULL},
        {"{\"a\":1}", "{{=| |=}}\n|a||={{ }}=|{{a}}", "11", NULL},
        {"{\"a\":1}", "{{= @ @ =}}(@a@)", "(1)", NULL},
        {"{\"a\":\"<\"}", "{{=<% %>=}}<%& a%><%#a%>x<%/a%>", "<x", NULL},
        {"{\"a\":1}", "{{=<% %>=}}<%>p%>.<%a%>", "1.1", "{{a}}"},
        {"{\"a\":1}", "x\n  {{=<% %>=}}  \ny<%a%>", "x\ny1", NULL},
        {"{\"a\":\"<\"}", "{{=[ ]=}}[{a}]", "<", NULL},
    };
    run(cases, MK_LEN(cases));
}

static void template_partials_are_included(void **state)
{
    (void)state;
    static const struct example cases[] = {
        {"{\"a\":1}", "({{>p}})({{> none }})", "(1)()", "{{a}}"},
        {"{\"a\":1}", "x {{>p}} y", "x 1\n y", "{{a}}\n"},
        {"{\"a\":\"<\\n>\"}", " \n  {{>p}}\n>", " \n  |\n  <\n>\n  |\n>", "|\n{{{a}}}\n|\n"},
        {"{}", "  {{>p}}", "  >\n  >", ">\n>"},
        {"{\"n\":1,\"l\":[{\"n\":2,\"l\":[]}]}", "{{>p}}", "1<2<>>", "{{n}}<{{#l}}{{>p}}{{/l}}>"},
        {"{}", "|\r\n{{>p}}\r\n|", "|\r\n>|", ">"},
        {"{\"t\":true}", " {{>p}}\n", " a\n b\n c\n", "{{#t}}\na\n{{/t}}\nb\n{{! }}\nc\n"},
    };
    run(cases, MK_LEN(cases));
}

static void expect_wrong(const char *text, const char *partial, bool strict, int error, const char *reason)
{
    struct mk_buf out;
    const struct example c = {"{\"a\":{\"x\":1},\"l\":[1,2]}", text, NULL, partial};
    assert_int_equal(render(&c, strict, &out), error);
    assert_str(mk_buf_str(&why), reason);
}

static void template_errors_have_positions(void **state)
{
    (void)state;
    expect_wrong("x\n {{a", NULL, false, -EINVAL,
                 "page, line 2, column 2: the tag is not closed: `}}` is missing");
    expect_wrong("{{{a}}", NULL, false, -EINVAL,
                 "page, line 1, column 1: the tag is not closed: `}}}` is missing");
    expect_wrong("\xc3\xa4{{#a}}", NULL, false, -EINVAL,
                 "page, line 1, column 2: the section `a` is not closed");
    expect_wrong("{{/a}}", NULL, false, -EINVAL, "page, line 1, column 1: the section `a` is not open");
    expect_wrong("{{#a}}{{#b}}{{/a}}{{/b}}", NULL, false, -EINVAL,
                 "page, line 1, column 13: the section `b` must be closed before `a`");
    expect_wrong("{{}}", NULL, false, -EINVAL, "page, line 1, column 1: expected a name in the tag, not ``");
    expect_wrong("{{a b}}", NULL, false, -EINVAL,
                 "page, line 1, column 1: expected a name in the tag, not `a b`");
    expect_wrong("{{a..b}}", NULL, false, -EINVAL,
                 "page, line 1, column 1: expected a name in the tag, not `a..b`");
    expect_wrong(
        "{{=x=}}", NULL, false, -EINVAL,
        "page, line 1, column 1: the tag must contain two delimiters between `=` signs: {{=<% %>=}}");
    expect_wrong("{{a.x}}\n{{a.y}}", NULL, true, -ENOENT,
                 "page, line 2, column 1: `a.y` does not name a value here");
    expect_wrong("{{>p}}", "\n{{#l}}{{z}}{{/l}}", true, -ENOENT,
                 "p, line 2, column 7: `z` does not name a value here");
    expect_wrong(" {{>q}}", NULL, true, -ENOENT, "page, line 1, column 2: `q` does not name a template");
    expect_wrong("{{>p}}", "{{>p}}", false, -ELOOP,
                 "p, line 1, column 1: `p` is nested in too many templates");
    char deep[DUDA_TEMPLATE_DEPTH_MAX * 6 + 7] = "";
    for (size_t i = 0; i <= DUDA_TEMPLATE_DEPTH_MAX; i++)
        memcpy(deep + i * 6, "{{#a}}", 7);
    expect_wrong(deep, NULL, false, -EINVAL,
                 "page, line 1, column 193: sections are nested more than 32 deep");
}

static void template_renders_structs(void **state)
{
    (void)state;
    mk_str tags[] = {MK_STR_INIT("a"), MK_STR_INIT("<b>")};
    struct person p = {.name = MK_STR("Ana"), .age = 30, .color = 1, .tags = tags, .n_tags = 2};
    const struct duda_value v = duda_value_struct(&person_shape, &p);
    struct mk_buf out = mk_buf_fixed(buffer, sizeof buffer);
    why = mk_buf_fixed(reasons, sizeof reasons);
    struct duda_template *t = duda_template_new(
        MK_STR("{{name}} {{age}} {{color}} {{#tags}}{{.}};{{/tags}}{{^place}}none{{/place}}"), "t", &why);
    assert_int_equal(duda_template_render(t, &v, NULL, &out, &why), 0);
    assert_str(mk_buf_str(&out), "Ana 30 green a;&lt;b&gt;;none");
    struct mk_buf small = mk_buf_fixed(buffer, 3);
    assert_int_equal(duda_template_render(t, &v, NULL, &small, &why), -ENOMEM);
    duda_template_free(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        fixture_test(template_values_are_rendered, NULL, pool_free),
        fixture_test(template_sections_are_rendered, NULL, pool_free),
        fixture_test(template_standalone_lines_are_removed, NULL, pool_free),
        fixture_test(template_delimiters_can_change, NULL, pool_free),
        fixture_test(template_partials_are_included, NULL, pool_free),
        fixture_test(template_errors_have_positions, NULL, pool_free),
        cmocka_unit_test(template_renders_structs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
