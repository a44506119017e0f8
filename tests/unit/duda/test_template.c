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
    const char *partial; /* text of the template `p`; after a form feed, that of `q` */
};

static int asset_url(void *ctx, mk_str name, struct mk_buf *url)
{
    (void)ctx;
    if (!mk_str_eq(name, MK_STR("app.css")))
        return -ENOENT;
    mk_buf_add(url, MK_STR("/static/app.1.css?a&b"));
    return 0;
}

/* Writes the route and the parameters: "/item?id=7&q=a". */
static int url_for(void *ctx, mk_str route, const struct duda_entry *params, size_t n, struct mk_buf *url)
{
    (void)ctx;
    if (mk_str_eq(route, MK_STR("none")))
        return -EINVAL;
    mk_buf_addf(url, "/%.*s", MK_STR_ARG(route));
    for (size_t i = 0; i < n; i++) {
        mk_buf_addf(url, "%c%s=", i ? '&' : '?', params[i].name);
        duda_value_write(url, &params[i].value);
    }
    return 0;
}

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
    mk_str second = mk_str_from_c(c->partial), first = mk_str_cut(&second, '\f');
    if (!e && c->partial)
        e = duda_templates_add(set, "p", first, &why);
    if (!e && second.p)
        e = duda_templates_add(set, "q", second, &why);
    const struct duda_render_options how = {
        .find_partial = find, .ctx = set, .strict = strict, .asset_url = asset_url, .url_for = url_for};
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

/* The cases of the module ~inheritance of the Mustache specification, without indentation. */
static void template_blocks_of_parents_are_replaced(void **state)
{
    (void)state;
    static const struct example cases[] = {
        {"{}", "a{{$b}}x{{/b}}c", "axc", NULL},
        {"{\"v\":1}", "{{$b}}{{v}}{{#v}}y{{/v}}{{>p}}{{/b}}", "1yz", "z"},
        {"{}", "({{<p}}{{/p}})", "(a default c)", "a {{$b}}default{{/b}} c"},
        {"{}", "{{<p}}ignored {{$b}}mine{{/b}} too{{/p}}", "a mine c", "a {{$b}}default{{/b}} c"},
        {"{\"v\":\"<\"}", "{{<p}}{{$b}}{{v}}{{/b}}{{/p}}", "&lt;", "{{$b}}{{/b}}"},
        {"{}", "{{<p}}{{$x}}unused{{/x}}{{/p}}", "d", "{{$b}}d{{/b}}"},
        {"{}", "{{<p}}{{$b}}1{{/b}}{{$c}}2{{/c}}{{/p}}", "2, 1", "{{$c}}{{/c}}, {{$b}}{{/b}}"},
        {"{}", "{{<p}}{{$b}}1{{/b}}{{/p}} {{<p}}{{$b}}2{{/b}}{{/p}}", "[1] [2]", "[{{$b}}{{/b}}]"},
        /* several levels: the most derived block applies */
        {"{}", "{{<p}}{{$b}}page{{/b}}{{/p}}", "page",
         "{{<q}}{{$b}}middle{{/b}}{{/q}}\f"
         "{{$b}}top{{/b}}"},
        {"{}", "{{<p}}{{/p}}", "middle",
         "{{<q}}{{$b}}middle{{/b}}{{/q}}\f"
         "{{$b}}top{{/b}}"},
        {"{}", "{{<p}}{{$c}}page{{/c}}{{/p}}", "(page)",
         "{{<q}}{{$b}}({{$c}}middle{{/c}}){{/b}}{{/q}}\f"
         "{{$b}}top{{/b}}"},
        {"{}", "{{<p}}{{$b}}x{{$b}}y{{/b}}{{/b}}{{/p}}", "xy", "{{$b}}d{{/b}}"},
        {"{}", "{{<p}}{{$foo}}override{{/foo}}{{/p}}", "override override override don't recurse",
         "{{$foo}}default{{/foo}} {{$bar}}{{<q}}{{/q}}{{/bar}}\f"
         "{{$foo}}q{{/foo}} {{<p}}{{$bar}}don't recurse{{/bar}}{{/p}}"},
        /* a block in a list, and blocks of a partial */
        {"{\"l\":[1,2]}", "{{<p}}{{$b}}<{{.}}>{{/b}}{{/p}}", "<1><2>", "{{#l}}{{$b}}{{/b}}{{/l}}"},
        {"{}", "{{<p}}{{$b}}page{{/b}}{{/p}}", "page",
         "{{>q}}\f"
         "{{$b}}top{{/b}}"},
        /* lines */
        {"{}", "{{<p}}\n{{$b}}\none\n{{/b}}\n{{/p}}\n", "<b>\none\n</b>\n", "<b>\n{{$b}}\nd\n{{/b}}\n</b>\n"},
        {"{}", "  {{<p}}{{/p}}\nx", "  a\n  b\nx", "a\nb\n"},
        {"{}", "  {{<p}}{{/p}} x\n", "  a\nb\n x\n", "a\nb\n"},
        {"{}", "y {{<p}}{{/p}}\nx", "y a\nx", "a"},
        {"{\"$b\":1}", "{{=<% %>=}}<%<p%><%$b%>x<%/b%><%/p%>", "x", "{{$b}}{{/b}}"},
    };
    run(cases, MK_LEN(cases));
}

static void template_loops_have_positions_and_else(void **state)
{
    (void)state;
    static const struct example cases[] = {
        {"{\"l\":[\"a\",\"b\",\"c\"]}", "{{#l}}{{@index}}{{@number}}{{.}}{{^@last}}, {{/@last}}{{/l}}",
         "01a, 12b, 23c", NULL},
        {"{\"l\":[{\"v\":{\"w\":1}}]}", "{{#l}}{{#v}}{{#@first}}{{w}}{{@last}}{{/@first}}{{/v}}{{/l}}",
         "1true", NULL},
        {"{\"l\":[[1,2],[3]]}", "{{#l}}{{@index}}:{{#.}}{{@index}}{{/.}} {{/l}}", "0:01 1:0 ", NULL},
        {"{}", "{{@index}}{{@first}}|", "|", NULL},
        {"{\"a\":1,\"l\":[]}",
         "{{#a}}yes{{else}}no{{/a}} {{#l}}x{{else}}none{{/l}} {{^a}}no{{else}}yes{{/a}}", "yes none yes",
         NULL},
        {"{\"a\":1}", "{{#a}}\n1\n  {{else}}\n2\n{{/a}}\n{{#b}}\n1\n{{ else }}\n2\n{{/b}}", "1\n2\n", NULL},
        {"{\"a\":1}", "{{#a}}{{#b}}1{{else}}2{{/b}}{{else}}3{{/a}}", "2", NULL},
        {"{\"l\":[1,2]}", "{{#l}}{{>p}}{{/l}}", "0;1;", "{{@index}};"},
    };
    run(cases, MK_LEN(cases));
}

static void template_filters_change_values(void **state)
{
    (void)state;
    static const struct example cases[] = {
        {"{\"a\":\"x y/&\xc3\xa4\"}", "{{a | url}} {{a|url}}", "x%20y%2F%26%C3%A4 x%20y%2F%26%C3%A4", NULL},
        {"{\"a\":\"\xc3\xa4<\xd0\xb6\xce\xb1\xc4\xbe\xe1\xba\xbf\"}", "{{a | upper}} {{{a|upper|lower}}}",
         "\xc3\x84&lt;\xd0\x96\xce\x91\xc4\xbd\xe1\xba\xbe \xc3\xa4<\xd0\xb6\xce\xb1\xc4\xbe\xe1\xba\xbf",
         NULL},
        {"{\"a\":\"\xc3\xa4\xc3\xb6\xc3\xbc\xc3\x9f\"}",
         "{{a | truncate 4}} {{a | truncate 3}} {{a | truncate 3 \"..\"}} {{a | truncate 1 \"..\"}}|{{a | "
         "truncate 0}}",
         "\xc3\xa4\xc3\xb6\xc3\xbc\xc3\x9f \xc3\xa4\xc3\xb6\xe2\x80\xa6 \xc3\xa4.. |", NULL},
        {"{\"a\":1234567,\"b\":-1234.5,\"c\":\"999999.999\",\"d\":12,\"e\":0.1}",
         "{{a | number}} {{b|number}} {{c | number 2}} {{d | number 2}} {{a | number 2 \".,\"}} {{e | "
         "number}} {{b | number 0}}",
         "1,234,567 -1,234.5 1,000,000.00 12.00 1.234.567,00 0.1 -1,234", NULL},
        {"{\"a\":9007199254740993,\"b\":1e300}", "{{a | number}} {{b | number 0 | truncate 6}}",
         "9,007,199,254,740,993 1,000\xe2\x80\xa6", NULL},
        {"{\"t\":0,\"u\":1709210096,\"v\":-1}",
         "{{t | date}} {{u | date \"%A %a %B %b %d %e %H %I %j %M %m %p %S %Y %y %%\"}} {{v | date '%F "
         "%T %R'}}",
         "1970-01-01 Thursday Thu February Feb 29 29 12 12 060 34 02 PM 56 2024 24 % 1969-12-31 23:59:59 "
         "23:59",
         NULL},
        {"{\"a\":\"</script>&\",\"m\":{\"k\":[1,null,\"\\u2028\"]}}",
         "{{{a | json}}} {{a | json}} {{{m | json}}} {{{n | json}}}",
         "\"\\u003c/script\\u003e\\u0026\" &quot;\\u003c/script\\u003e\\u0026&quot; "
         "{\"k\":[1,null,\"\xe2\x80\xa8\"]} null",
         NULL},
        {"{\"a\":\"\",\"l\":[],\"n\":null,\"z\":0,\"f\":false}",
         "{{a | default \"x\"}}{{l | default 'y'}}{{n | default z}}{{m | default \"<\" | upper}}{{z | "
         "default \"x\"}}{{f | default \"x\"}}",
         "xyz&lt;0false", NULL},
        {"{\"t\":-2208988801}", "{{t | date \"%Y %y\"}}", "1899 99", NULL},
        {"{}", "{{m | upper}}{{m | number 2}}{{m | date}}|", "|", NULL},
        {"{\"f\":\"app.css\"}", "{{asset \"app.css\"}} {{{asset 'app.css' | upper}}} {{f | asset}}",
         "/static/app.1.css?a&amp;b /STATIC/APP.1.CSS?A&B /static/app.1.css?a&amp;b", NULL},
        {"{\"a\":\"|\"}", "{{a | default \"|\" | truncate 5 \"}\"}}", "|", NULL},
        {"{\"l\":[{\"n\":\"a\"}]}", "  {{>p}}\n", "  A\n", "{{#l}}{{n | upper}}\n{{/l}}"},
    };
    run(cases, MK_LEN(cases));
}

/* Renders the tag without escapes. Returns a copy of the text or of the error message. */
static mk_str render_tag(const char *values, const char *name, const char *const *filters, size_t n)
{
    static char text[512];
    struct mk_buf tag = mk_buf_fixed(text, sizeof text), out;
    mk_buf_addf(&tag, "{{{%s", name);
    for (size_t i = 0; i < n; i++)
        if (filters[i])
            mk_buf_addf(&tag, " | %s", filters[i]);
    mk_buf_add(&tag, mk_str_of("}}}", 4));
    assert_false(tag.failed);
    int e = render(&(struct example){.values = values, .text = text}, false, &out);
    mk_str result = mk_buf_str(e ? &why : &out);
    return result.len ? mk_str_of(memcpy(pool_alloc(NULL, result.len), result.p, result.len), result.len)
                      : MK_STR("");
}

static void expect_same_text(const char *const *filters, size_t n, mk_str got, mk_str expected)
{
    struct mk_buf chain = mk_buf_fixed(buffer, sizeof buffer);
    for (size_t i = 0; i < n; i++)
        mk_buf_addf(&chain, " | %s", filters[i] ? filters[i] : "");
    if (!mk_str_eq(got, expected))
        fail_msg("%.*s: \"%.*s\" is not \"%.*s\"", MK_STR_ARG(mk_buf_str(&chain)), MK_STR_ARG(got),
                 MK_STR_ARG(expected));
}

/* `default` changes no value that has content, wherever it is in the chain. */
static void check_neutral_defaults(const char *values, const char *a, const char *b, const char *c)
{
    static const char *const d = "default \"d\"";
    const char *const plain[] = {a, b, c};
    const char *const chains[][6] = {
        {d, a, b, c}, {a, d, b, c}, {a, b, d, c}, {a, b, c, d}, {a, d, b, d, c, d}};
    mk_str expected = render_tag(values, "q", plain, MK_LEN(plain));
    for (size_t i = 0; i < MK_LEN(chains); i++)
        expect_same_text(chains[i], MK_LEN(chains[i]), render_tag(values, "q", chains[i], MK_LEN(chains[i])),
                         expected);
}

/* Filters other than `json` leave null unchanged, so the filters after `default` see its argument. */
static void check_defaults_of_null(const char *a, const char *b, const char *c)
{
    static const char values[] = "{\"n\":null}", d[] = "default \"1234\"";
    const char *const plain[] = {d, b, c};
    const char *const chains[][5] = {{a, d, b, c}, {a, a, d, b, c}};
    mk_str expected = render_tag(values, "n", plain, MK_LEN(plain));
    for (size_t i = 0; i < MK_LEN(chains); i++)
        expect_same_text(chains[i], MK_LEN(chains[i]), render_tag(values, "n", chains[i], MK_LEN(chains[i])),
                         expected);
}

/* A filter may write its result, or leave the value unchanged: no filter may overwrite the text that it reads. */
static void template_filters_may_leave_values_unchanged(void **state)
{
    (void)state;
    static const char *const filters[] = {"asset",    "date",       "json",  "lower",
                                          "number 2", "truncate 6", "upper", "url"};
    static const char *const values[] = {"{\"q\":\"app.css\"}", "{\"q\":\"1234567\"}", "{\"q\":1709210096}",
                                         "{\"q\":\"\xc3\x84 b/&<c>\"}"};
    for (size_t a = 0; a < MK_LEN(filters); a++)
        for (size_t b = 0; b < MK_LEN(filters); b++)
            for (size_t c = 0; c < MK_LEN(filters) + 1; c++) {
                const char *last = c < MK_LEN(filters) ? filters[c] : NULL;
                for (size_t i = 0; i < MK_LEN(values); i++)
                    check_neutral_defaults(values[i], filters[a], filters[b], last);
                if (a != 2) /* json */
                    check_defaults_of_null(filters[a], filters[b], last);
            }
}

static void template_urls_have_parameters(void **state)
{
    (void)state;
    static const struct example cases[] = {
        {"{}", "<a href=\"{{url_for \"home\"}}\">{{{ url_for 'home' }}}</a>", "<a href=\"/home\">/home</a>",
         NULL},
        {"{\"id\":7,\"q\":\"a b\"}", "{{url_for \"item\" id=id q=q}} {{&url_for \"item\" id=id q=q}}",
         "/item?id=7&amp;q=a b /item?id=7&q=a b", NULL},
        {"{\"a\":{\"b\":1},\"l\":[\"x\",\"y\"]}",
         "{{url_for 'i' n=a.b m=2}}{{#l}} {{url_for 'i' t=. k=@number}}{{/l}}",
         "/i?n=1&amp;m=2 /i?t=x&amp;k=1 /i?t=y&amp;k=2", NULL},
        {"{}", "{{url_for \"i\"  a=\"x = }y\"\n b='\"' }}", "/i?a=x = }y&amp;b=&quot;", NULL},
        {"{\"l\":[1,2]}", "  {{>p}}\n", "  /i?n=1\n  /i?n=2\n", "{{#l}}\n{{url_for \"i\" n=.}}\n{{/l}}"},
        {"{}", "({{url_for \"none\"}}{{url_for \"i\" a=missing}})", "(/i?a=)", NULL},
        {"{\"url_for\":\"x\"}", "{{url_for}}{{url_for | upper}}", "xX", NULL},
    };
    run(cases, MK_LEN(cases));
}

static void template_urls_without_routes_are_errors(void **state)
{
    (void)state;
    struct mk_buf out = mk_buf_fixed(buffer, sizeof buffer);
    const struct duda_value value = duda_value_null();
    why = mk_buf_fixed(reasons, sizeof reasons);
    struct duda_template *t = duda_template_new(MK_STR("{{url_for \"a\"}}"), "page", &why);
    assert_non_null(t);
    assert_int_equal(duda_template_render(t, &value, NULL, &out, &why), -EINVAL);
    assert_str(mk_buf_str(&why), "page, line 1, column 1: `a` names a route, but there are none");
    duda_template_free(t);
}

static void template_bytes_of_any_length_become_base64(void **state)
{
    (void)state;
    static const char bytes[300];
    static const char *const texts[] = {"{{b}}", "{{{b}}}", "{{b | upper}}"};
    const struct duda_entry entries[] = {{"b", duda_value_bytes(mk_str_of(bytes, sizeof bytes))}};
    const struct duda_value value = duda_value_map(entries, 1);
    for (size_t i = 0; i < MK_LEN(texts); i++) {
        struct mk_buf out = mk_buf_fixed(buffer, sizeof buffer);
        why = mk_buf_fixed(reasons, sizeof reasons);
        struct duda_template *t = duda_template_new(mk_str_from_c(texts[i]), "page", &why);
        assert_non_null(t);
        assert_int_equal(duda_template_render(t, &value, NULL, &out, &why), 0);
        assert_int_equal(out.len, 400);
        assert_int_equal(strspn(buffer, "A"), 400);
        duda_template_free(t);
    }
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
    expect_wrong(
        "{{a | nosuch}}", NULL, false, -EINVAL,
        "page, line 1, column 1: there is no such filter; the filters are asset, date, default, json, "
        "lower, number, truncate, upper and url");
    expect_wrong(
        "{{a |}}", NULL, false, -EINVAL,
        "page, line 1, column 1: there is no such filter; the filters are asset, date, default, json, "
        "lower, number, truncate, upper and url");
    expect_wrong("{{a | truncate}}", NULL, false, -EINVAL,
                 "page, line 1, column 1: the filter lacks an argument");
    expect_wrong("{{a | upper 1}}", NULL, false, -EINVAL,
                 "page, line 1, column 1: the filter has too many arguments");
    expect_wrong("{{a | truncate x}}", NULL, false, -EINVAL,
                 "page, line 1, column 1: the first argument of the filter must be a number");
    expect_wrong("{{a | number 16}}", NULL, false, -EINVAL,
                 "page, line 1, column 1: the filter `number` writes at most 15 decimals");
    expect_wrong("{{a | number 2 \".\"}}", NULL, false, -EINVAL,
                 "page, line 1, column 1: the second argument of `number` consists of the thousands and the "
                 "decimal separator: \",.\"");
    expect_wrong(
        "{{a | date \"%Q\"}}", NULL, false, -EINVAL,
        "page, line 1, column 1: the format of `date` may contain %A %a %B %b %d %e %F %H %I %j %M %m %p "
        "%R %S %T %Y %y and %%");
    expect_wrong("{{a | default \"x}}", NULL, false, -EINVAL,
                 "page, line 1, column 1: the quote is not closed");
    expect_wrong("{{asset \"app.css\" b}}", NULL, false, -EINVAL,
                 "page, line 1, column 1: expected `|` and a filter");
    expect_wrong("{{a|upper|upper|upper|upper|upper|upper|upper|upper|upper}}", NULL, false, -EINVAL,
                 "page, line 1, column 1: the tag has too many filters");
    expect_wrong("{{| upper}}", NULL, false, -EINVAL,
                 "page, line 1, column 1: expected a name in the tag, not ``");
    expect_wrong(
        "{{#l}}{{. | date \"%Y\" | date}}{{/l}}", NULL, false, -EINVAL,
        "page, line 1, column 7: `.` is not a time: `date` takes timestamps, and seconds since 1970");
    expect_wrong("{{a | json | number}}", NULL, false, -EINVAL,
                 "page, line 1, column 1: `a` is not a number");
    expect_wrong("{{asset \"none\"}}", NULL, false, -EINVAL,
                 "page, line 1, column 1: `none` names an asset that does not exist");
    expect_wrong("{{url_for a}}", NULL, false, -EINVAL,
                 "page, line 1, column 1: `url_for` needs the name of a route in quotes: {{url_for \"issue\" "
                 "id=issue.id}}");
    expect_wrong("{{url_for \"a}}", NULL, false, -EINVAL,
                 "page, line 1, column 1: `url_for` needs the name of a route in quotes: {{url_for \"issue\" "
                 "id=issue.id}}");
    expect_wrong("{{url_for \"a\" b}}", NULL, false, -EINVAL,
                 "page, line 1, column 1: the parameters of `url_for` have the form `name=value`");
    expect_wrong("{{url_for \"a\" =b}}", NULL, false, -EINVAL,
                 "page, line 1, column 1: the parameters of `url_for` have the form `name=value`");
    expect_wrong("{{url_for \"a\" | upper}}", NULL, false, -EINVAL,
                 "page, line 1, column 1: the parameters of `url_for` have the form `name=value`");
    expect_wrong("{{url_for \"a\" b=}}", NULL, false, -EINVAL,
                 "page, line 1, column 1: the value of a parameter is a name, a number, or text in quotes");
    expect_wrong("{{url_for \"a\" b=\"c}}", NULL, false, -EINVAL,
                 "page, line 1, column 1: the value of a parameter is a name, a number, or text in quotes");
    expect_wrong("{{url_for \"a\" b=c..d}}", NULL, false, -EINVAL,
                 "page, line 1, column 1: the value of a parameter is a name, a number, or text in quotes");
    expect_wrong("{{url_for 'a' 1=1 2=1 3=1 4=1 5=1 6=1 7=1 8=1 9=1 a=1 b=1 c=1 d=1 e=1 f=1 g=1 h=1}}", NULL,
                 false, -EINVAL, "page, line 1, column 1: `url_for` has more than 16 parameters");
    expect_wrong("{{url_for \"a\" b=none}}", NULL, true, -ENOENT,
                 "page, line 1, column 1: `a` has a parameter whose value is unknown here");
    expect_wrong("{{url_for \"none\"}}", NULL, true, -ENOENT,
                 "page, line 1, column 1: `none` has no URL with these parameters");
    expect_wrong("{{a.y | upper}}", NULL, true, -ENOENT,
                 "page, line 1, column 1: `a.y` does not name a value here");
    expect_wrong("{{else}}", NULL, false, -EINVAL, "page, line 1, column 1: `else` is not in a section");
    expect_wrong("{{$b}}{{else}}{{/b}}", NULL, false, -EINVAL,
                 "page, line 1, column 7: `else` is not in a section");
    expect_wrong("{{#a}}{{else}}{{else}}{{/a}}", NULL, false, -EINVAL,
                 "page, line 1, column 15: the section `a` has a second `else`");
    expect_wrong("{{<p}}{{$b}}{{/p}}", "", false, -EINVAL,
                 "page, line 1, column 13: the block `b` must be closed before `p`");
    expect_wrong("{{<p}}", "", false, -EINVAL, "page, line 1, column 1: the parent `p` is not closed");
    expect_wrong("{{<q}}{{/q}}", NULL, true, -ENOENT, "page, line 1, column 1: `q` does not name a template");
    expect_wrong("{{<p}}{{$c}}{{/c}}{{/p}}", "{{$b}}{{/b}}", true, -ENOENT,
                 "page, line 1, column 7: `c` does not name a block of the parent");
    expect_wrong("{{<p}}{{/p}}", "{{<p}}{{/p}}", false, -ELOOP,
                 "p, line 1, column 1: `p` is nested in too many templates");
    expect_wrong("{{@index}}", NULL, true, -ENOENT,
                 "page, line 1, column 1: `@index` does not name a value here");
    expect_wrong("{{#l}}{{@none}}{{/l}}", NULL, true, -ENOENT,
                 "page, line 1, column 7: `@none` does not name a value here");
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

static int find_global(void *ctx, mk_str name, struct duda_value *out)
{
    unsigned *n = ctx;
    ++*n;
    if (mk_str_eq(name, MK_STR("fails")))
        return -ECONNRESET;
    if (!mk_str_eq(name, MK_STR("n")) && !mk_str_eq(name, MK_STR("n.m")))
        return -ENOENT;
    *out = duda_value_unsigned(*n);
    return 0;
}

/* Returns the number of calls of find_global(). */
static unsigned expect_global(const char *text, bool strict, int error, const char *expected)
{
    unsigned n = 0;
    const struct duda_render_options options = {
        .find_global = find_global, .ctx = &n, .strict = strict, .allows_unknown_sections = true};
    const mk_str names[] = {MK_STR_INIT("a"), MK_STR_INIT("b")};
    const struct duda_value items[] = {duda_value_text(names[0]), duda_value_text(names[1])};
    const struct duda_entry page[] = {{"l", duda_value_list(items, 2)}, {"n", duda_value_cstr("own")}};
    const struct duda_value value = duda_value_map(page, MK_LEN(page));
    struct mk_buf out = mk_buf_fixed(buffer, sizeof buffer);
    why = mk_buf_fixed(reasons, sizeof reasons);
    struct duda_template *t = duda_template_new(mk_str_from_c(text), "page", &why);
    assert_int_equal(duda_template_render(t, &value, &options, &out, &why), error);
    assert_str(mk_buf_str(error ? &why : &out), expected);
    duda_template_free(t);
    return n;
}

static void template_global_values_are_found_when_they_are_rendered(void **state)
{
    (void)state;
    assert_int_equal(expect_global("{{n}} {{@n}} {{@n}} {{@n.m}}", true, 0, "own 1 2 3"), 3);
    assert_int_equal(expect_global("{{#l}}{{@n}}{{.}}{{@index}}{{/l}}", true, 0, "1a02b1"), 2);
    assert_int_equal(expect_global("{{#@n}}{{.}}{{/@n}}{{^@n}}no{{/@n}}", true, 0, "1"), 2);
    assert_int_equal(expect_global("{{^l}}{{@n}}{{@fails}}{{/l}}{{n}}{{@first}}", false, 0, "own"), 0);
    assert_int_equal(expect_global("{{@n | upper}}{{@none | default \"x\"}}", true, 0, "1x"), 2);
    assert_int_equal(expect_global("{{@none}}{{#@none}}x{{/@none}}", false, 0, ""), 2);
    expect_global("{{#@none}}x{{/@none}}", true, -ENOENT,
                  "page, line 1, column 1: `@none` does not name a value here");
    expect_global("a{{@fails}}", false, -ECONNRESET, "page, line 1, column 2: `@fails` cannot be read");
    expect_global("{{@fails | default \"x\"}}", false, -ECONNRESET,
                  "page, line 1, column 1: `@fails` cannot be read");
}

static const struct duda_template *find_in_set(void *ctx, mk_str name)
{
    return duda_templates_find(ctx, name);
}

/* The name of a file decides whether its values are escaped; text within a page becomes HTML, too. */
static void template_text_files_are_not_escaped(void **state)
{
    static const struct {
        const char *name, *text, *expected;
    } cases[] = {
        {"mail.txt", "{{v}} {{{v}}} {{v | upper}}", "a<b a<b A<B"},
        {"notes.md", "{{v}}", "a<b"},
        {"rows.csv", "{{v}}", "a<b"},
        {"txt", "{{v}}", "a&lt;b"},
        {"mail.txt.html", "{{v}}", "a&lt;b"},
        {"page.html", "{{v}} {{>inner.txt}} {{v}}", "a&lt;b a&lt;b a&lt;b"},
        {"outer.txt", "{{v}} {{>inner.txt}} {{>inner.html}} {{v}}", "a<b a<b a&lt;b a<b"},
        {"derived.html", "{{<layout.txt}}{{$b}}{{v}}{{/b}}{{/layout.txt}}", "a&lt;b a&lt;b"},
        {"derived.txt", "{{<layout.html}}{{$b}}{{v}}{{/b}}{{/layout.html}}", "a&lt;b a&lt;b"},
        {"both.txt", "{{<layout.txt}}{{$b}}{{v}}{{/b}}{{/layout.txt}}", "a<b a<b"},
    };
    (void)state;
    const struct duda_value value = duda_value_members({"v", duda_value_cstr("a<b")});
    struct duda_templates *set = duda_templates_new();
    const struct duda_render_options options = {.find_partial = find_in_set, .ctx = set};
    why = mk_buf_fixed(reasons, sizeof reasons);
    assert_int_equal(duda_templates_add(set, "inner.txt", MK_STR("{{v}}"), &why), 0);
    assert_int_equal(duda_templates_add(set, "inner.html", MK_STR("{{v}}"), &why), 0);
    assert_int_equal(duda_templates_add(set, "layout.txt", MK_STR("{{v}} {{$b}}{{/b}}"), &why), 0);
    assert_int_equal(duda_templates_add(set, "layout.html", MK_STR("{{v}} {{$b}}{{/b}}"), &why), 0);
    for (size_t i = 0; i < MK_LEN(cases); i++) {
        struct mk_buf out = mk_buf_fixed(buffer, sizeof buffer);
        struct duda_template *t = duda_template_new(mk_str_from_c(cases[i].text), cases[i].name, &why);
        assert_int_equal(duda_template_render(t, &value, &options, &out, &why), 0);
        assert_str(mk_buf_str(&out), cases[i].expected);
        duda_template_free(t);
    }
    duda_templates_free(set);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        fixture_test(template_values_are_rendered, NULL, pool_free),
        fixture_test(template_sections_are_rendered, NULL, pool_free),
        fixture_test(template_standalone_lines_are_removed, NULL, pool_free),
        fixture_test(template_delimiters_can_change, NULL, pool_free),
        fixture_test(template_partials_are_included, NULL, pool_free),
        fixture_test(template_blocks_of_parents_are_replaced, NULL, pool_free),
        fixture_test(template_loops_have_positions_and_else, NULL, pool_free),
        fixture_test(template_filters_change_values, NULL, pool_free),
        fixture_test(template_filters_may_leave_values_unchanged, NULL, pool_free),
        cmocka_unit_test(template_urls_have_parameters),
        cmocka_unit_test(template_urls_without_routes_are_errors),
        cmocka_unit_test(template_text_files_are_not_escaped),
        cmocka_unit_test(template_bytes_of_any_length_become_base64),
        fixture_test(template_errors_have_positions, NULL, pool_free),
        cmocka_unit_test(template_renders_structs),
        cmocka_unit_test(template_global_values_are_found_when_they_are_rendered),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
