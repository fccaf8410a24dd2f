/* What an open model is inside. Read-only once open. */
#ifndef FATHOM_ENGINE_MODEL_H
#define FATHOM_ENGINE_MODEL_H

#include "base/strbuf.h"
#include "models/deepseek_ocr1.h"
#include "models/deepseek_ocr2.h"
#include "models/deepseek_v4.h"
#include "text/tokenizer.h"
#include "weights/config.h"

struct fathom_model {
    struct weights *weights; /* owned                                        */
    struct model_config config;
    union { /* by config.kind */
        struct ocr1 ocr1;
        struct ocr2 ocr2;
    };
    const struct decoder *decoder; /* of that model                              */
    struct v4 *v4;               /* owned; when this is DeepSeek-V4, of whose config only the kind is set, else NULL */
    struct tokenizer *tokenizer; /* owned; NULL when opened without          */
    int32_t image_id;            /* of "<image>"                             */
    int32_t cell_ids[2];         /* of "<td>", "</td>", or -1                */
};

/* Opens config and weights of a folder and binds the network; no tokenizer (fathom-probe needs none). */
enum fathom_status model_open_network(struct fathom_model **out, const char *dir, struct fathom_err *err);

/* The same over weights made in memory; takes ownership of w, also when it fails. */
enum fathom_status model_from_weights(struct fathom_model **out, struct weights *w, const struct model_config *config,
                                      struct fathom_err *err);

/* Whether dir is a DeepSeek-V4 folder, and its opening, tokenizer included. */
bool model_is_v4(const char *dir);
enum fathom_status model_open_v4(struct fathom_model **out, const char *dir, struct fathom_err *err);

/* The account that fathom_model_inspect gives of one. */
void model_write_v4(struct strbuf *s, const struct fathom_model *m, bool json);

#endif
