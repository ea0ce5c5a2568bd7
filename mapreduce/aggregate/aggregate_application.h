#pragma once

#include "fjord/mapreduce/application.h"
#include "group_table.h"

namespace fjord::mapreduce {

ApplicationInfo aggregate_info(GroupTableSabotage sabotage = {});

}  // namespace fjord::mapreduce
