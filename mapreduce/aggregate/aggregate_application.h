#pragma once

#include "fjord/mapreduce/application.h"

namespace fjord::mapreduce {

ApplicationInfo aggregate_info();

}  // namespace fjord::mapreduce
