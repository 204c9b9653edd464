#pragma once

#include <filesystem>

#include "backends/engine.h"
#include "model/config_file.h"
#include "model/model.h"

namespace stagecraft {

inline Engine textbook_engine(const std::filesystem::path& model, std::size_t n_threads = 1) {
  return Engine::open(model, {BackendKind::Textbook, n_threads});
}
// An engine that can show the result of every step of a plan.
inline Engine walker_engine(const std::filesystem::path& model, std::size_t n_threads = 1) {
  return Engine::open(model, {BackendKind::Walker, n_threads});
}
inline Engine cpu_engine(const std::filesystem::path& model, std::size_t n_threads = 1,
                         KvType kv_type = KvType::F32) {
  return Engine::open(model, {BackendKind::Cpu, n_threads, kv_type});
}

// A model as the functions of the course get it, with the checkpoint that its weights point into.
struct CourseModel {
  explicit CourseModel(const std::filesystem::path& path)
      : checkpoint(Checkpoint::open(path)), model(load(path, checkpoint)) {}
  const Checkpoint checkpoint;
  Model model;

 private:
  static Model load(const std::filesystem::path& path, const Checkpoint& checkpoint) {
    Model model{read_config(path), {}};
    model.parameters = load_parameters(model.config, checkpoint);
    return model;
  }
};

}  // namespace stagecraft
