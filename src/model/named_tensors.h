#pragma once

#include <set>
#include <span>
#include <string>

#include "checkpoint/checkpoint.h"

namespace stagecraft {

// Whether a tensor of this name may be left unread: the frequencies of RoPE in old files, which are
// computed here, and the names that match `unused` (Plan::unused).
bool is_not_needed(const std::string& name, std::span<const std::string> unused);

// The tensors of a checkpoint, which a model takes by name. Remembers which names were taken. Pass
// it by reference: a copy would remember names that the original does not.
class NamedTensors {
 public:
  explicit NamedTensors(const Checkpoint& checkpoint) : checkpoint_(checkpoint) {}
  NamedTensors(const NamedTensors&) = delete;
  NamedTensors& operator=(const NamedTensors&) = delete;

  bool has(const std::string& name) const { return checkpoint_.find(name) != nullptr; }
  // The tensor of this name, or nullptr if there is none. It lives as long as the checkpoint.
  const StoredTensor* take(const std::string& name);

  // Throws Error naming a tensor that was not taken, unless is_not_needed. Such a tensor belongs to
  // a model that the config does not describe: one more layer, a bias.
  void refuse_leftovers(std::span<const std::string> unused = {}) const;

  // The name of the file, for errors: "models/story/model.safetensors".
  const std::string& where() const { return checkpoint_.name(); }

 private:
  const Checkpoint& checkpoint_;
  std::set<std::string, std::less<>> taken_;
};

}  // namespace stagecraft
