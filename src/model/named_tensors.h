#pragma once

#include <set>
#include <span>
#include <string>

#include "checkpoint/checkpoint.h"

namespace stagecraft {

// Whether files may hold a tensor of this name although no model needs it: old files' frequencies
// of rope, which are computed here, and what `unused` says (Plan::unused).
bool is_not_needed(const std::string& name, std::span<const std::string> unused);

// The tensors of a checkpoint while a model takes them by name, one after the other.
class NamedTensors {
 public:
  explicit NamedTensors(const Checkpoint& checkpoint) : checkpoint_(checkpoint) {}

  bool has(const std::string& name) const { return checkpoint_.find(name) != nullptr; }
  // The tensor of that name, or nullptr if there is none. It lives as long as the checkpoint.
  const StoredTensor* take(const std::string& name);

  // A tensor that was not taken belongs to a model that the config does not describe: one more
  // layer, a bias. Throws Error naming it, unless it is_not_needed.
  void refuse_leftovers(std::span<const std::string> unused = {}) const;

  // The file, for errors: "models/story/model.safetensors".
  const std::string& where() const { return checkpoint_.name(); }

 private:
  const Checkpoint& checkpoint_;
  std::set<std::string, std::less<>> taken_;
};

}  // namespace stagecraft
