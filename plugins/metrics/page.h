/* SPDX-License-Identifier: Apache-2.0 */
/* The live page: the files of page/, compressed by gzip, which CMakeLists.txt embeds into the plugin. */
#ifndef METRICS_PAGE_H
#define METRICS_PAGE_H

#include <monkey/str.h>

extern const mk_str metrics_page_html, metrics_page_style, metrics_page_script;

#endif
