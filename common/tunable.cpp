#include "fjord/common/tunable.h"

#include <fmt/core.h>

#include "fjord/common/log.h"
#include "fjord/common/setting.h"

namespace fjord {

Tunable::Tunable(Declaration declaration) : declaration_(std::move(declaration)), value_(declaration_.default_value) {
  FJORD_CHECK_MSG(declaration_.min <= declaration_.default_value && declaration_.default_value <= declaration_.max,
                  declaration_.name);
}

Status Tunable::set(std::int64_t value) {
  if (value < declaration_.min || value > declaration_.max) {
    return Status(StatusCode::InvalidArgument, fmt::format("{}: {} is outside of [{}, {}]", declaration_.name, value,
                                                           declaration_.min, declaration_.max));
  }
  value_.store(value, std::memory_order_relaxed);
  return Status::ok();
}

namespace {

Unit unit_of(SettingType type) {
  switch (type) {
    case SettingType::Bytes:
      return Unit::Bytes;
    case SettingType::Time:
      return Unit::Milliseconds;
    case SettingType::Ratio:
      return Unit::Ratio;
    case SettingType::Integer:
    case SettingType::Boolean:
    case SettingType::Choice:
      break;
  }
  return Unit::Count;
}

const SettingDeclaration& setting_named(std::string_view name) {
  const SettingDeclaration* setting = find_setting(name);
  FJORD_CHECK_MSG(setting != nullptr, std::string(name));
  return *setting;
}

}  // namespace

Tunable& TunableRegistry::declare(std::string_view setting) {
  return declare(setting, setting_named(setting).default_value);
}

Tunable& TunableRegistry::declare(std::string_view setting, std::int64_t default_value) {
  const SettingDeclaration& known = setting_named(setting);
  return declare({.name = std::string(known.name),
                  .unit = unit_of(known.type),
                  .default_value = default_value,
                  .min = known.min,
                  .max = known.max,
                  .help = std::string(known.meaning)});
}

Tunable& TunableRegistry::declare(const Tunable::Declaration& declaration) {
  std::lock_guard lock(mutex_);
  auto [it, made] = tunables_.try_emplace(declaration.name, declaration);
  if (made) {
    if (auto early = early_values_.find(declaration.name); early != early_values_.end()) {
      Status status = it->second.set(early->second);
      if (!status) log::warning("tunables", "{}; the default {} stays", status.message(), declaration.default_value);
      early_values_.erase(early);
    }
  }
  return it->second;
}

Status TunableRegistry::set(const std::string& name, std::int64_t value) {
  std::lock_guard lock(mutex_);
  if (auto it = tunables_.find(name); it != tunables_.end()) return it->second.set(value);
  early_values_[name] = value;
  return Status(StatusCode::NotFound, fmt::format("no setting is called \"{}\" yet", name));
}

std::vector<const Tunable*> TunableRegistry::all() const {
  std::lock_guard lock(mutex_);
  std::vector<const Tunable*> result;
  result.reserve(tunables_.size());
  for (const auto& [name, tunable] : tunables_) result.push_back(&tunable);
  return result;
}

}  // namespace fjord
