/* fathom-synth for DeepSeek-V4. */
#ifndef FATHOM_TOOLS_FOLDER_V4_H
#define FATHOM_TOOLS_FOLDER_V4_H

#include "base/err.h"

/* dir/model.safetensors for the sizes of a config.json, and a copy of it. With a quantization_config, matrices are FP8 and
 * experts FP4 (expert_dtype "fp8": FP8) with their scales. */
enum fathom_status write_folder_v4(const char *dir, const char *config_path, struct fathom_err *err);

#endif
