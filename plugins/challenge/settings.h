/* SPDX-License-Identifier: Apache-2.0 */
/* The settings of [CHALLENGE], and its rules. */
#ifndef CHALLENGE_SETTINGS_H
#define CHALLENGE_SETTINGS_H

#include <monkey/condition.h>
#include <monkey/plugin.h>

#include "page.h"

struct challenge_rule {
    struct challenge_rule *next;
    mk_str key, value; /* the rule as written */
    bool allows;
    struct mk_conditions *conditions;
};

struct challenge_settings {
    struct challenge_rule *first, *last;
    size_t n;
    unsigned subjects; /* what the conditions of the rules test: flags of enum mk_condition_subject */
    bool challenges;   /* there is a rule `Challenge` */
    uint8_t bits;
    uint64_t lifetime_ms;
    unsigned status; /* index of the choice */
    mk_str key_file, page_file;
    /* Set once, for the first host that uses the section: */
    bool is_prepared;
    mk_str key, policy;
    struct challenge_page page;
    const struct challenge_rule **rules;    /* n rules */
    const struct mk_condition_index *index; /* of the rules */
};

extern const struct mk_conf_table challenge_table;

/* Reads the files of the section. Returns 0, after reporting any mistakes, or -ENOMEM. */
int challenge_settings_prepare(struct mk_config *config, struct challenge_settings *s);
/* The status of a challenge. */
unsigned challenge_settings_status(const struct challenge_settings *s);

/* Finds the first rule for the request. Returns 0, or the status with which to reject the request. *rule is the rule
 * `Challenge` that applies, or NULL. A request is challenged if any of its path variants is. */
unsigned challenge_settings_find_rule(const struct challenge_settings *s, struct mk_request *request,
                                      const struct challenge_rule **rule);

#endif
