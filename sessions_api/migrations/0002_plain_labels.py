# Changes labels and help texts only: no statement reaches the database.

import django.utils.timezone
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('sessions_api', '0001_initial'),
    ]

    operations = [
        migrations.AlterField(
            model_name='session',
            name='client_address',
            field=models.GenericIPAddressField(help_text='Client address that opened the session.', null=True, verbose_name='opened from'),
        ),
        migrations.AlterField(
            model_name='session',
            name='created_at',
            field=models.DateTimeField(default=django.utils.timezone.now, editable=False, help_text='When the session was opened.'),
        ),
        migrations.AlterField(
            model_name='session',
            name='email',
            field=models.CharField(blank=True, help_text='Recorded only; not used to authenticate.', max_length=254, verbose_name='e-mail given by the program'),
        ),
        migrations.AlterField(
            model_name='session',
            name='expires_at',
            field=models.DateTimeField(db_index=True, editable=False, help_text='Extended each time the session is used.'),
        ),
        migrations.AlterField(
            model_name='session',
            name='last_used_at',
            field=models.DateTimeField(default=django.utils.timezone.now, editable=False, help_text='Accurate to within five minutes.'),
        ),
    ]
