"""The field's terms in Chinese with their English, for questions about runbooks in English.

The nouns are those of the Chinese documentation of the tools that runbooks are about, the verbs and states those
that operators report with. One translation each: the first word an English runbook would use.
"""

from collections.abc import Iterator

_ENTRIES = """
磁盘 disk, 硬盘 disk, 盘 disk, 存储 storage, 卷 volume, 存储卷 volume, 持久卷 persistent volume,
文件系统 filesystem, 空间 space, 目录 directory, 文件 file, 文件描述符 file descriptor, 句柄 file descriptor,
索引节点 inode, 容量 capacity, 碎片 defragment, 碎片整理 defragment, 镜像 image, 快照 snapshot, 备份 backup,
恢复 recovery, 还原 restore, 阵列 array,

内存 memory, 处理器 cpu, 核 cpu, 资源 resource, 配额 quota, 限额 quota, 上限 limit, 限制 limit, 超额 overcommit,
超卖 overcommit, 不足 insufficient, 不够 insufficient, 用完 exceed, 超过 exceed, 超出 exceed, 用尽 exhaust,
耗尽 exhaust, 满 full, 写满 full, 占满 full, 打满 full, 快满 almost full, 请求 request, 限流 throttle,
节流 throttle, 负载 load, 压力 pressure, 性能 performance, 吞吐 throughput, 泄漏 leak,

超时 timeout, 延迟 latency, 慢 slow, 太慢 slow, 变慢 slow, 缓慢 slow, 响应 response, 卡住 stuck, 阻塞 block,
积压 backlog, 堆积 backlog, 队列 queue, 落后 behind, 滞后 lag, 跟不上 behind,

失败 fail, 报错 error, 错误 error, 异常 error, 故障 failure, 崩溃 crash, 重启 restart, 挂 down, 挂掉 down,
宕机 down, 不可用 unavailable, 损坏 corrupt, 丢失 lost, 丢弃 drop, 丢包 packet drop, 缺失 missing, 缺少 missing,
消失 disappear, 拒绝 reject, 无效 invalid, 非法 invalid, 不一致 inconsistent, 不匹配 mismatch, 不符 mismatch,
冲突 conflict, 重复 duplicate, 乱序 out of order, 抖动 flapping, 反复 flapping, 频繁 frequent,

网络 network, 网卡 network interface, 连接 connection, 连不上 connect, 无法连接 connect, 不可达 unreachable,
访问不到 unreachable, 防火墙 firewall, 端口 port, 流量 traffic, 域名 dns, 解析 resolve, 代理 proxy,
网关 gateway, 负载均衡 load balancer, 连接池 connection pool, 连接跟踪 conntrack, 网络策略 network policy,
接收 receive, 发送 send,

节点 node, 机器 node, 主机 host, 服务器 server, 集群 cluster, 主节点 master, 控制平面 control plane,
控制面 control plane, 容器 container, 副本 replica, 实例 instance, 成员 member, 命名空间 namespace,
名字空间 namespace, 部署 deployment, 有状态 statefulset, 守护进程 daemon, 任务 job, 作业 job, 定时任务 cronjob,
定时 cron, 调度 schedule, 调度器 scheduler, 控制器 controller, 驱逐 evict, 污点 taint, 容忍 toleration,
亲和性 affinity, 就绪 ready, 未就绪 not ready, 存活 liveness, 探针 probe, 健康检查 health check, 等待 waiting,
挂起 pending, 更新 update, 滚动更新 rolling update, 升级 upgrade, 发布 rollout, 回滚 rollback, 版本 version,
扩容 scale, 缩容 scale down, 扩缩容 autoscaler, 自动扩容 autoscaler, 自动伸缩 autoscaler, 弹性伸缩 autoscaler,
期望 desired, 创建 create, 删除 delete, 服务 service, 应用 application, 接口 api, 聚合 aggregated,

证书 certificate, 过期 expire, 到期 expire, 续期 renew, 续签 renew, 轮换 rotate, 客户端 client, 服务端 server,
权限 permission, 认证 authentication, 鉴权 authorization, 令牌 token, 凭证 credential, 密钥 secret,
密码 password,

监控 monitoring, 指标 metric, 抓取 scrape, 采集 scrape, 目标 target, 规则 rule, 计算 evaluation,
评估 evaluation, 样本 sample, 时间戳 timestamp, 标签 label, 数据块 block, 压缩 compaction, 合并 compaction,
加载 load, 重新加载 reload, 重载 reload, 写入 write, 远程写 remote write, 远程写入 remote write, 读取 read,
只读 read only, 分片 shard, 告警 alert, 报警 alert, 静默 silence, 抑制 inhibit, 通知 notification, 路由 route,
配置 config, 生效 reload, 日志 log, 事件 event, 列出 list, 监听 watch, 脚本 script, 自定义 custom,
可用性 availability, 错误预算 error budget, 心跳 heartbeat,

时钟 clock, 时间 time, 偏差 skew, 偏移 skew, 同步 sync, 选举 election, 选主 leader election, 领导者 leader,
多数派 quorum, 一致 consistent, 复制 replication, 主从 replication, 主库 primary, 从库 replica, 数据库 database,
事务 transaction, 死锁 deadlock, 锁 lock, 索引 index, 慢查询 slow query, 缓存 cache, 命中 hit, 线程 thread,
进程 process, 堆 heap, 垃圾回收 garbage collection, 消息 message, 消费 consumer, 分区 partition, 主题 topic,
订单 order, 支付 payment, 用户 user, 会话 session, 登录 login
"""

_ENGLISH = dict(entry.split(maxsplit=1) for entry in _ENTRIES.strip().split(","))
_LONGEST = max(map(len, _ENGLISH))


def in_english(text: str) -> Iterator[str]:
    """The English of each term in `text`, in order; of terms within one another the longest, from the left."""
    at = 0
    while at < len(text):
        term = next((text[at:end] for end in range(at + _LONGEST, at, -1) if text[at:end] in _ENGLISH), None)
        if term:
            yield _ENGLISH[term]
        at += len(term) if term else 1
