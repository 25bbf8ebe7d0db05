"""Small traces for tests: a Spark application of three tasks, two jobs of Hadoop's."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

SQL = "org.apache.spark.sql.execution.ui.SparkListenerSQLExecution"


def spark_task(stage: int, index: int, launch: int, finish: int, **more: Any) -> dict[str, Any]:
    return {
        "Event": "SparkListenerTaskEnd",
        "Stage ID": stage,
        "Stage Attempt ID": 0,
        "Task End Reason": {"Reason": more.get("reason", "Success")},
        "Task Info": {
            "Index": index,
            "Launch Time": launch,
            "Finish Time": finish,
            "Executor ID": "1",
            "Host": "h1",
            "Locality": "NODE_LOCAL",
            "Speculative": False,
        },
        "Task Metrics": {
            "Input Metrics": {"Bytes Read": more.get("read", 0)},
            "Shuffle Read Metrics": {"Remote Bytes Read": more.get("fetched", 0)},
        },
    }


def stage_info(number: int, parents: list[int], rdd: int) -> dict[str, Any]:
    return {
        "Stage ID": number,
        "Stage Name": f"stage {number}",
        "Parent IDs": parents,
        "RDD Info": [{"RDD ID": rdd}],
    }


def spark_job(number: int, at: int, stages: list[dict[str, Any]], **more: str) -> dict[str, Any]:
    return {
        "Event": "SparkListenerJobStart",
        "Job ID": number,
        "Submission Time": at,
        "Stage IDs": [stage["Stage ID"] for stage in stages],
        "Stage Infos": stages,
        "Properties": {f"spark.{key.replace('_', '.')}": value for key, value in more.items()},
    }


def spark_events() -> list[dict[str, Any]]:
    """One SQL execution in two jobs, the second of which lists the stage of the first again."""
    result = {"Result": "JobSucceeded"}
    return [
        {"Event": "SparkListenerLogStart", "Spark Version": "3.5.0"},
        {
            "Event": "SparkListenerExecutorAdded",
            "Executor ID": "1",
            "Executor Info": {"Host": "h1", "Total Cores": 2},
        },
        {
            "Event": "SparkListenerApplicationStart",
            "App ID": "app-1",
            "Timestamp": 1000,
            "User": "ada",
        },
        {"Event": f"{SQL}Start", "executionId": 7, "description": "count  rows", "time": 2000},
        spark_job(0, 2100, [stage_info(0, [], 5)], **{"sql_execution_id": "7"}),
        spark_task(0, 0, 2200, 3200, read=100),
        spark_task(0, 1, 2200, 2700, reason="ExceptionFailure"),
        spark_task(0, 1, 2700, 4700, read=200),
        {"Event": "SparkListenerStageCompleted", "Stage Info": stage_info(0, [], 5)},
        {
            "Event": "SparkListenerJobEnd",
            "Job ID": 0,
            "Completion Time": 4800,
            "Job Result": result,
        },
        spark_job(
            1,
            4900,
            [stage_info(1, [], 5), stage_info(2, [1], 9)],
            **{"sql_execution_id": "7", "scheduler_pool": "reports"},
        ),
        spark_task(2, 0, 5000, 5500, fetched=50),
        {"Event": "SparkListenerStageCompleted", "Stage Info": stage_info(2, [1], 9)},
        {
            "Event": "SparkListenerJobEnd",
            "Job ID": 1,
            "Completion Time": 5600,
            "Job Result": result,
        },
        {"Event": f"{SQL}End", "executionId": 7, "time": 6000},
        {"Event": "SparkListenerApplicationEnd", "Timestamp": 7000},
    ]


def as_lines(events: list[dict[str, Any]]) -> str:
    return "".join(f"{json.dumps(event)}\n" for event in events)


def written(folder: Path, name: str, text: str) -> Path:
    file = folder / name
    file.write_text(text)
    return file


def rumen_job(number: int, submit: int, maps: list[int], reduces: list[int]) -> dict[str, Any]:
    """Maps and reduces of so many milliseconds, all at once; a reduce shuffles for a fifth."""

    def task(kind: str, at: int, begin: int, length: int) -> dict[str, Any]:
        attempt = {
            "result": "SUCCESS",
            "startTime": begin,
            "finishTime": begin + length,
            "shuffleFinished": begin + length // 5 if kind == "REDUCE" else -1,
            "sortFinished": begin + length // 5 if kind == "REDUCE" else -1,
            "hostName": "/rack1/node1",
            "hdfsBytesRead": length * 10,
            "mapOutputBytes": length,
            "reduceShuffleBytes": length * 3,
        }
        return {
            "taskID": f"task_{number}_{kind[0].lower()}_{at}",
            "taskType": kind,
            "attempts": [attempt],
            "preferredLocations": [{"layers": ["rack1", "node1"]}],
        }

    maps_end = submit + max(maps)
    return {
        "jobID": f"job_{number}",
        "user": "ada",
        "queue": "daily",
        "jobName": "sort",
        "outcome": "SUCCESS",
        "submitTime": submit,
        "finishTime": maps_end + max(reduces, default=0),
        "mapTasks": [task("MAP", at, submit, length) for at, length in enumerate(maps)],
        "reduceTasks": [task("REDUCE", at, maps_end, length) for at, length in enumerate(reduces)],
        "otherTasks": [],
    }


def rumen_text() -> str:
    jobs = [rumen_job(1, 10_000, [1000, 2000], [5000]), rumen_job(2, 12_000, [3000], [])]
    return "\n".join(json.dumps(job, indent=1) for job in jobs)


def history_lines() -> list[str]:
    """A job of one map in the text of Hadoop 0.20."""
    task = 'TASKID="task_1_m_0" TASK_TYPE="MAP"'
    attempt = f'{task} TASK_ATTEMPT_ID="attempt_1_m_0_0"'
    counters = r'COUNTERS="{(g)(g)[(HDFS_BYTES_READ)(read \\(bytes\\))(500)]}"'
    return [
        'Meta VERSION="1" .',
        r'Job JOBID="job_1" JOBNAME="word\.count" USER="ada" SUBMIT_TIME="1000" .',
        f'Task {task} START_TIME="1500" SPLITS="/r1/n1" .',
        f'MapAttempt {attempt} START_TIME="2000" .',
        f'MapAttempt {attempt} TASK_STATUS="SUCCESS" FINISH_TIME="4000" HOSTNAME="/r1/n2" '
        f"{counters} .",
        'Job JOBID="job_1" FINISH_TIME="4500" JOB_STATUS="SUCCESS" .',
    ]
