"""The pages' addresses. One block per page; a page's name is its module's name."""

from django.urls import include, path

from memoryhub.web import (
    account,
    changes,
    connect,
    decay_policy,
    demo,
    guards,
    jobs,
    live,
    login,
    overview,
    palette,
    prices,
    report,
    settings,
    status,
)

urlpatterns = [
    path("login", login.login, name="login"),
    path("logout", login.logout, name="logout"),
    path("preferences", account.preferences, name="preferences"),
    path("account", account.account, name="account"),
    path("account/password", account.change_password, name="change_password"),
    path("workspace", account.switch_workspace, name="switch_workspace"),
    path("palette", palette.palette, name="palette"),
    # Hub
    path("", overview.overview, name="overview"),
    path("feed", overview.feed_news, name="feed_news"),
    path("live/changes", live.live_changes, name="live_changes"),
    path("changes", changes.changes, name="changes"),
    path("changes/<str:public_id>", changes.change, name="change"),
    path("changes/<str:public_id>/revert", changes.revert, name="revert_change"),
    path("jobs", jobs.jobs, name="jobs"),
    path("jobs/run", jobs.run_now, name="run_job"),
    path("jobs/<str:public_id>", jobs.job, name="job"),
    path("jobs/<str:public_id>/retry", jobs.retry, name="retry_job"),
    path("settings", settings.settings, name="settings"),
    path("settings/keys", settings.keys, name="settings_keys"),
    path("settings/keys/new", settings.create_key, name="create_key"),
    path("settings/keys/<int:key_id>/revoke", settings.revoke_key, name="revoke_key"),
    path("settings/members", settings.members, name="settings_members"),
    path("settings/members/new", settings.create_member, name="create_member"),
    path("settings/members/<int:user_id>", settings.change_member, name="change_member"),
    path("settings/workspace", settings.change_workspace, name="change_workspace"),
    path("settings/decay", decay_policy.decay_policy, name="settings_decay"),
    path("settings/decay/change", decay_policy.change_decay_policy, name="change_decay"),
    path("settings/guards", guards.guards, name="settings_guards"),
    path("settings/guards/change", guards.change_guards, name="change_guards"),
    path("status", status.status, name="status"),
    path("demo/load", demo.load_demo, name="load_demo"),
    path("demo/remove", demo.remove_demo, name="remove_demo"),
    path("connect", connect.connect, name="connect"),
    path("connect/seen", connect.seen, name="connect_seen"),
    path("figures", connect.figures, name="figures"),
    # Short term
    path("report", report.report, name="report"),
    path("prices", prices.prices, name="prices"),
    path("prices/new", prices.set_price, name="set_price"),
    path("prices/<int:price_id>/remove", prices.drop_price, name="drop_price"),
    # Medium term
    path("", include("memoryhub.web.session_urls")),
    # Long term
    path("", include("memoryhub.web.memory_urls")),
]
