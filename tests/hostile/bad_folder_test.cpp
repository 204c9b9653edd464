// The error message for a folder without a model, or with a wrong index of shards.
#include "tests/hostile/refused_model.h"

namespace stagecraft {
namespace {

constexpr const char* kShard = "model-00002-of-00003.safetensors";

// A weight_map with a wrong file, and the error about it.
Break head_in(const std::string& file) {
  return weight_map(R"({"lm_head.weight": ")" + file + "\"}");
}
std::string head_not_in(const std::string& file) {
  return "model.safetensors.index.json: 'lm_head.weight': expected a file name in this folder, "
         "found '" +
         file + "'";
}

const BadModel kBadIndexes[] = {
    {"leads_to_the_parent_folder", head_in("../model.safetensors"),
     head_not_in("../model.safetensors")},
    {"leads_to_an_absolute_path", head_in("/etc/passwd"), head_not_in("/etc/passwd")},
    {"leads_to_a_folder_below", head_in("shards/a"), head_not_in("shards/a")},
    {"leads_to_the_folder_itself", head_in("."), head_not_in(".")},
    {"leads_to_the_parent_itself", head_in(".."), head_not_in("..")},
    {"leads_to_a_name_with_a_slash_at_its_end", head_in("a/"), head_not_in("a/")},
    {"leads_nowhere", head_in(""), head_not_in("")},
    {"leads_to_a_name_with_a_zero_byte", head_in(R"(a\u0000b)"), head_not_in(R"(a\x00b)")},
    {"leads_to_a_number", weight_map(R"({"lm_head.weight": 3})"),
     "model.safetensors.index.json: 'lm_head.weight': expected a string, found 3"},
    {"names_a_shard_that_is_not_there", head_in("model-00004-of-00003.safetensors"),
     "model.safetensors.index.json: tensor 'lm_head.weight': expected in "
     "'model-00004-of-00003.safetensors', which is not in this folder"},
    {"lost_a_shard", all_of({weight_map("{}"), removed(kShard)}),
     "model.safetensors.index.json: tensor 'model.layers.0.input_layernorm.weight': expected in "
     "'model-00002-of-00003.safetensors', which is not in this folder"},
    {"names_a_shard_that_is_no_safetensors", head_in("config.json"),
     "config.json: header length: expected at most 428 bytes, found 7165896756295633531: the file "
     "is cut short, or not a safetensors file"},
    {"has_a_folder_for_a_shard", all_of({weight_map("{}"), a_folder(kShard)}),
     "model-00002-of-00003.safetensors: expected a file, found a folder"},
    {"has_an_empty_shard", all_of({weight_map("{}"), text(kShard, "")}),
     "model-00002-of-00003.safetensors: expected a safetensors file, found a file of 0 bytes"},
    {"names_the_wrong_shard", head_in(kShard),
     "model.safetensors.index.json: tensor 'lm_head.weight': expected in "
     "'model-00002-of-00003.safetensors', which does not hold it"},
    {"names_a_tensor_that_no_shard_holds",
     weight_map(R"({"model.extra": "model-00002-of-00003.safetensors"})"),
     "model.safetensors.index.json: tensor 'model.extra': expected in "
     "'model-00002-of-00003.safetensors', which does not hold it"},
    {"has_a_tensor_in_two_shards",
     all_of({weight_map("{}"), copied("model-00001-of-00003.safetensors", kShard)}),
     "model-00002-of-00003.safetensors: tensor 'model.embed_tokens.weight' is also in another "
     "shard"},
    {"has_no_weight_map", index_text(R"({"metadata": {}})"),
     "model.safetensors.index.json: 'weight_map': expected an object that names a file for each "
     "tensor, found none"},
    {"has_an_empty_weight_map", index_text(R"({"weight_map": {}})"),
     "model.safetensors.index.json: 'weight_map': expected an object that names a file for each "
     "tensor, found an object"},
    {"has_an_array_for_a_weight_map", index_text(R"({"weight_map": ["a"]})"),
     "model.safetensors.index.json: 'weight_map': expected an object that names a file for each "
     "tensor, found an array of 1"},
    {"is_an_array", index_text("[]"),
     "model.safetensors.index.json: expected an object, found an array of 0"},
    {"is_empty", index_text(""), "model.safetensors.index.json: expected JSON, found nothing"},
    {"is_cut_short", index_text(R"({"weight_map": {"lm_head.weight": "mod)"),
     "model.safetensors.index.json: not valid JSON: it ends too early"},
};

const BadModel kBadFolders[] = {
    {"is_missing", removed(""), "FOLDER: no such folder"},
    {"is_a_file", all_of({removed(""), text("", "text")}),
     "FOLDER: expected a model folder or a model file (GGUF, .bin, .flm), found "
     "another file"},
    {"may_not_be_read", unreadable(""), "model.safetensors: cannot be opened: Permission denied"},
    {"is_empty", all_of({removed("config.json"), removed("model.safetensors")}),
     "FOLDER: expected model.safetensors or model.safetensors.index.json, found neither"},
    {"holds_only_a_pickle", all_of({removed("model.safetensors"), text("pytorch_model.bin", "x")}),
     "FOLDER: pytorch_model.bin is a Python pickle, which this engine does not run; convert it "
     "once: python3 reference/convert_pytorch_bin.py FOLDER"},
    {"holds_only_pickle_shards",
     all_of({removed("model.safetensors"), text("pytorch_model.bin.index.json", "{}")}),
     "FOLDER: pytorch_model.bin is a Python pickle, which this engine does not run; convert it "
     "once: python3 reference/convert_pytorch_bin.py FOLDER"},
};

INSTANTIATE_TEST_SUITE_P(BadIndex, RefusedModel, ::testing::ValuesIn(kBadIndexes), row_name);
INSTANTIATE_TEST_SUITE_P(BadFolder, RefusedModel, ::testing::ValuesIn(kBadFolders), row_name);

}  // namespace
}  // namespace stagecraft
