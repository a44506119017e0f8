/* SPDX-License-Identifier: Apache-2.0 */
#include <duda/test.h>

static void sign_up(struct duda_test *t, const char *name)
{
    const char *token = duda_test_csrf_token(t, duda_test_get(t, "/sign-up"));
    duda_test_post_form(t, "/sign-up", "name", name, "email", "ana@example.org", "password", "correct horse",
                        "csrf_token", token, NULL);
}

static struct duda_test_response create_issue(struct duda_test *t, const char *title)
{
    const char *token = duda_test_csrf_token(t, duda_test_get(t, "/new"));
    return duda_test_post_form(t, "/new", "title", title, "text", "Hot.", "csrf_token", token, NULL);
}

DUDA_TEST(lists_and_finds_issues)
{
    duda_expect_contains(t, duda_test_get(t, "/").body, "The coffee machine drips");
    struct duda_test_response found = duda_test_get(t, "/api/issues?q=tea");
    duda_expect_text(t, duda_test_json(t, found.body, "/0/title"), "Buy tea");
    duda_expect(t, !duda_test_json(t, found.body, "/1").p);
}

DUDA_TEST(creates_an_issue)
{
    sign_up(t, "cy");
    duda_expect_status(t, create_issue(t, ""), 422);
    struct duda_test_response page = duda_test_follow(t, create_issue(t, "Kettle <boils>"));
    duda_expect_contains(t, page.body, "Kettle &lt;boils&gt;");
    duda_expect_contains(t, page.body, "The issue is saved.");
}

DUDA_TEST(only_the_author_edits)
{
    sign_up(t, "dora");
    const char *token = duda_test_csrf_token(t, duda_test_get(t, "/new"));
    duda_expect_status(
        t, duda_test_post_form(t, "/issues/1/edit", "title", "x", "text", "", "csrf_token", token, NULL),
        403);
    duda_test_clear_cookies(t);
    duda_expect_status(t, duda_test_get(t, "/new"), 401);
}

DUDA_TEST(announces_changes)
{
    struct duda_test_event event;
    sign_up(t, "eve");
    struct duda_test_stream *live = duda_test_stream_open(t, &(struct duda_test_request){.target = "/live"});
    create_issue(t, "Kettle");
    duda_expect(t, duda_test_stream_event(live, 5000, &event));
    duda_expect_text(t, event.data, "/new");
}
